"""The words of which names of columns consist, in the languages of those who name them."""

from collections.abc import Iterator, Mapping
import re
import unicodedata

WORDS: Mapping[str, frozenset[str]] = {
    'time': frozenset(
        't time times timestamp timestamps stamp clock secs sec seconds timems timeus timens nsec '
        'nsecs nanosec nanosecs nanoseconds ts date datetime elapsed duration ipoc '
        'datum '
        'zeit zeitstempel temps tiempo tempo время 时间 時間 时间戳 시간'.split()
    ),
    'position': frozenset(
        'q pos position positions ang angle angles theta th qpos jpos '
        'winkel lage posicion angulo posizione angolo posicao положение угол '
        '位置 角度 转角 角位移 位移 위치 각도'.split()
    ),
    'velocity': frozenset(
        'dq qd qdot vel velo velocity velocities speed speeds omega qvel dtheta thetadot jvel '
        'geschwindigkeit drehzahl winkelgeschwindigkeit vitesse velocidad velocita velocidade '
        'скорость 速度 角速度 转速 速さ 回転速度 속도'.split()
    ),
    'acceleration': frozenset(
        'ddq qdd qddot acc accel acceleration accelerations qacc ddtheta '
        'beschleunigung aceleracion accelerazione 加速度 角加速度'.split()
    ),
    'effort': frozenset(
        'tau torque torques eff effort efforts moment moments trq torq jtau qfrc force forces '
        'drehmoment kraft couple par coppia momento усилие момент '
        '力矩 扭矩 转矩 トルク 力 토크'.split()
    ),
    'current': frozenset(
        'current currents curr cur iq amps strom courant corriente corrente '
        'ток 电流 電流 전류'.split()
    ),
    'temperature': frozenset(
        'temperature temperatures temp temperatur temperatura температура 温度 온도'.split()
    ),
    'name': frozenset('name names'.split()),
}
REFERENCE = frozenset(
    'target ref reference desired des d cmd command commanded setpoint sp goal nominal set '
    'planned action soll sollwert consigne cible deseada desiderata '
    '目标 目標 指令 期望 设定 给定'.split()
)
MEASURED = frozenset(
    'actual act meas measured msr fbk feedback real present raw state states obs observation '
    'sensor sen rec record recorded log logs logged ist istwert mesure medida misurata '
    '实际 実際 测量 反馈 当前'.split()
)
NEUTRAL = frozenset(
    'joint joints j axis axes link l field header data all abs robot value values id no m '
    'jointstate jointstates motor drive actuator est estimated filtered filt left right '
    'gelenk achse antrieb axe articulation articulacion eje giunto asse junta сустав ось '
    '关节 関節 轴 軸 的 관절 축'.split()
)
# Other quantities: of the tool, of the model, of a drive's health.
OTHER = frozenset(
    'ext external err error errors diff tcp pose cart cartesian ee eef voltage std limit '
    'limits max min pred predicted model sim imu base orientation quat dtau mode status '
    'ft wrench index seq scaling scale factor contact '
    'spannung schleppfehler fehler 电压 误差'.split()
)
UNIT_WORDS = frozenset('s ms us ns rad deg rev rpm nm n a mm cm ncm dot ps per'.split())
# Names that say more than their words.
IDIOMS: Mapping[frozenset[str], tuple[str, bool]] = {
    frozenset(('observation', 'state')): ('position', False),  # of LeRobot
    frozenset(('action',)): ('position', True),
    frozenset(('axis', 'act')): ('position', False),  # of KUKA's controllers
    frozenset(('x', 'value')): ('time', False),  # of LabVIEW
}
WORD = re.compile(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_A-Za-z]+')
_QUANTITIES = frozenset[str]().union(*WORDS.values())
_KNOWN = _QUANTITIES | REFERENCE | MEASURED | NEUTRAL | OTHER
# Letters of Latin scripts end here: their accents are passed over.
_LATIN = '\u024f'
_SHORTEST = 3  # of the parts of a compound


def words_of(text: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, without accents, compounds split."""
    plain = ''.join(
        unicodedata.normalize('NFKD', sign)[0] if '\x7f' < sign <= _LATIN else sign
        for sign in unicodedata.normalize('NFC', text)
    )
    return tuple(part for word in WORD.findall(plain) for part in _split(word.lower()))


def _split(word: str) -> Iterator[str]:
    """Yield the parts of a compound that are known and speak of a quantity, else the word."""
    if word in _KNOWN:
        yield word
    elif word.isascii():
        cuts = range(_SHORTEST, len(word) - _SHORTEST + 1)
        pairs = ((word[:k], word[k:]) for k in cuts)
        yield from next((p for p in pairs if p[1] in _QUANTITIES and p[0] in _KNOWN), (word,))
    else:  # scripts without blanks: the longest known word at each place
        while word:
            lengths = range(len(word), 0, -1)
            size = next((n for n in lengths if word[:n] in _KNOWN), 1)
            yield word[:size]
            word = word[size:]
