"""What the arm carries in the last recording, against the arm without it."""

from collections.abc import Callable
import math
from pathlib import Path
import threading
from typing import TYPE_CHECKING

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Inertia, InertiaStamped, Vector3
import numpy as np
from std_msgs.msg import Header

from ...core.findings import Finding
from ...exceptions import ConfigurationError, RecordingError
from ...files.atomic import beside_recording, new_names
from ...files.configuration import Configuration, read_urdf
from ..common.messages import log_findings
from ..common.runtime import LATCHED, WorkerNode
from ..common.worker_process import run_in_process

if TYPE_CHECKING:
    from ...core.payload.payload import Payload


def payload_sentence(payload: 'Payload') -> str:
    """Say mass and centre of mass, as far as they are determined."""
    from ...files.payload.payload_file import determined

    body, (mass, *centre) = payload.central_sigma, determined(payload)[:4]
    shown = ', '.join('unknown' if math.isnan(x) else f'{x:.4f}' for x in centre)
    heavy = 'an unknown mass' if math.isnan(mass) else f'{mass:.4g} ± {body[0]:.2g} kg'
    return f'{heavy} at ({shown}) m in {payload.frame}'


def inertia_message(payload: 'Payload', link: str, stamp: Time) -> InertiaStamped | None:
    """Return the body, None where a value of it is not determined."""
    if not np.isfinite(payload.central_sigma).all():
        return None
    m, x, y, z, *moments = payload.central.tolist()
    names = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
    inertia = Inertia(m=m, com=Vector3(x=x, y=y, z=z), **dict(zip(names, moments, strict=True)))
    return InertiaStamped(header=Header(stamp=stamp, frame_id=link), inertia=inertia)


def identify_payload_bag(
    empty: str,
    loaded: str,
    configuration: Configuration,
    description: str,
    progress: Callable[[str], None],
) -> tuple['Payload', str, tuple[Finding, ...], Path]:
    """Identify a payload, in a process of its own; return it, its link, findings, its file."""
    # Only that process needs these: the node starts without them.
    from ...core.payload.payload import payload_from_recordings
    from ...files.payload.inputs import is_results, open_payload
    from ...files.payload.payload_file import write_payload

    progress(f"reading '{empty}' and '{loaded}'")
    settings = configuration.identification
    # Results hold the friction that was chosen with them.
    own = None if is_results(empty) else configuration
    fallback = description or read_urdf(configuration) or ''
    given = open_payload(empty, loaded, settings.payload.frame, own, fallback=fallback)
    payload, findings = payload_from_recordings(
        given.empty, given.loaded, given.robot, given.settings, progress, given.frame.name
    )
    file = beside_recording(loaded, 'payload.yaml')
    file = Path(settings.output_dir) / file.name if settings.output_dir else file
    # What was identified before stays.
    file = next(name for name in new_names(file) if not name.exists())
    facts = {'robot': given.robot.name, 'empty': empty, 'loaded': loaded}
    write_payload(file, payload, facts, findings)
    return payload, given.frame.body, findings, file


class PayloadService:
    """Identifies payloads and publishes `~/payload`; `stop` is set when the node ends."""

    def __init__(self, node: WorkerNode, stop: threading.Event):
        self._node, self._stop, self._settings = node, stop, node.configuration.identification
        self._first, self._reference = '', self._settings.payload.empty
        self._file: Path | None = None
        self._inertia = node.create_publisher(InertiaStamped, '~/payload', LATCHED)

    def note_recording(self, bag: str) -> None:
        """Compare with the first recording, where no other is set."""
        self._first = self._first or bag
        self._reference = self._reference or bag

    def note_results(self, bag: str, folder: str) -> None:
        """Take what was identified from the recording in its place."""
        if self._reference == bag:
            self._reference = folder

    def check(self, bag: str) -> None:
        """Check that a payload can be identified from a recording."""
        if not bag:
            raise RecordingError('there is no recording yet: record the arm with the payload')
        if bag == self._first and not self._settings.payload.empty:
            raise RecordingError(
                'there is nothing to compare with: record the arm with the payload too, or set '
                'identification.payload.empty to a recording without it'
            )

    def identify(self, bag: str, description: str) -> str:
        """Identify the payload in a recording and publish it; return a sentence about it."""
        payload, link, findings, self._file = run_in_process(
            identify_payload_bag,
            *(self._reference, bag, self._node.configuration, description),
            progress=lambda text: self._node.publish_state('identifying', text),
            stop=self._stop,
            time_limit=self._settings.time_limit,
        )
        now = self._node.get_clock().now().to_msg()
        if (message := inertia_message(payload, link, now)) is not None:
            self._inertia.publish(message)
        log_findings(self._node.get_logger(), findings)
        sentence = f"{payload_sentence(payload)}, against '{self._reference}'"
        self._node.publish_state('done', sentence, {'file': self._file, 'bag': bag})
        return sentence

    def set(self) -> str:
        """Set the last payload, see `PayloadSetter`; return a sentence about it."""
        from ...files.payload.payload_file import read_body
        from .payload_setting import PayloadSetter

        file, settings = self._file, self._settings.payload
        if file is None:
            raise RecordingError('no payload is identified yet: call ~/identify_payload')
        if not settings.maker:
            raise ConfigurationError('set identification.payload.maker to that of the robot')
        frame, body, _ = read_body(file)
        before = file.with_name(f'{file.stem}_before.yaml')
        configuration = self._node.configuration
        timeout, joints = configuration.excitation.timeout, configuration.robot.joints
        setter = PayloadSetter(self._node, timeout, joints)
        text = setter.set(settings.maker, frame, body, before, settings.service)
        self._node.get_logger().info(text)
        return text
