"""Mistakes that matter to an identification, by module: what is wrong, the text, and what by."""

NAMED = {
    'model/friction': (
        ('Stribeck effect without a sign',
         "['stribeck_velocity']) ** 2)) * np.sign(dq)", "['stribeck_velocity']) ** 2)) * 1.0"),
        ('a spring that slips forgets where it turned round',
         'z = min(max(z + step, -distance), distance)', 'z = min(max(step, -distance), distance)'),
        ('load-dependent friction may be negative',
         "term('Fl', '1', coulomb, load_dependent=True",
         "term('Fl', '1', coulomb, positive='', load_dependent=True"),
        ('load of friction without its size',
         'size = 0.0 if load is None else np.abs(load)', 'size = 0.0 if load is None else load'),
    ),
    'model/dynamics': (
        ('motors of couplings drive one joint alone',
         '(joint, k, drive.ratios[joint] * values)', '(joint, k, values)'),
        ('mimicked joints load their driver whatever their ratio',
         'jacobian.T, links, axes=1', 'jacobian.T != 0.0, links, axes=1'),
    ),
    'parameters/physical_consistency': (
        ('impossible bodies',
         'clarabel.PSDTriangleConeT(4)] * matrices', 'clarabel.PSDTriangleConeT(4)] * 0'),
        ('centres of mass as sure as what is near them',
         'W[block, block] @= _mean_metric(prior.value[block], prior.centre_sigma)', 'pass'),
    ),
    'parameters/essential': (
        ('F-test with correlated rows as independent',
         'return float(estimate.rows.sum() / max(ratio, 1.0))',
         'return float(estimate.rows.sum())'),
    ),
    'parameters/carried_body': (
        ('payload in a frame seen from the wrong side',
         'back @ pseudo_inertia(e) @ back.T', 'placement @ pseudo_inertia(e) @ placement.T'),
    ),
    'parameters/standard': (
        ('prior pulls a thousand times less',
         'looser * self.spread,', '1e3 * looser * self.spread,'),
        ('negative friction and rotor inertia allowed',
         'if p.symbol in NONNEGATIVE]', 'if False]'),
    ),
    'payload/payload': (
        ('payload that no body can be',
         'return consistent_parameters(', 'return free if True else consistent_parameters('),
        ('payload without the weights of the data',
         'root = np.linalg.cholesky(white[square] + 1e-12 * np.diag(np.diag(white[square])))',
         'root = np.eye(len(rows))'),
    ),
    'regression/covariance': (
        ('no white floor of σ',
         'scale = np.sqrt(np.maximum(1.0, ratio', 'scale = np.sqrt(np.minimum(1.0, ratio'),
        ('residuals correlate in no time',
         'return int(np.clip(round(length / shortest), min(FEWEST, length), length))',
         'return length'),
        ('blocks by rows instead of seconds', 'SECONDS / step if step > 0.0 else 1.0', '100.0'),
        ('scores of the last joint alone',
         'scores[block] += projected', 'scores[block] = projected'),
        ('a motion that repeats is as good as new ones',
         'if system.q is not None and (period', 'if False and (period'),
        ('few blocks tell as much as many', '(quantile / INTERVAL) ** 2', '1.0'),
        ('batches shorter than the memory of noise',
         'starts = np.unique(np.arange(len(scores)) * count // len(scores), return_index=True)[1]',
         'starts = np.arange(len(scores))'),
        ('leverage of blocks left out', 'TAKEN * B @ (normals', '0.0 * B @ (normals'),
    ),
    'regression/estimators': (
        ('variance of the weighted residual dropped, output error included',
         'white) * total / max(int(rows.sum()) - len(value), 1)', 'white)'),
        ('what the model leaves out not in σ',
         'largest(wider, least) + model_error', 'largest(wider, least)'),
        ('prior adds no variance', 'bias = bread @ V.T @ V @ bread.T', 'bias = 0.0 * bread'),
        ('all joints weighed alike',
         '[1.0 / sigma for sigma in sigmas]', '[1.0 for sigma in sigmas]'),
        ('outliers count in full',
         'np.sqrt(HUBER / np.maximum(size, HUBER))', 'np.sqrt(HUBER / HUBER + 0.0 * size)'),
        ('instruments are the measured columns',
         'np.vstack([j.z * j.k[:, None] for j in joints]))', 'W)'),
    ),
    'regression/least_squares': (
        ('total least squares without its correction', 's**2 - smallest**2', 's**2'),
        ('no hold on the plain fit', 'HOLD = 3e-3', 'HOLD = 0.0'),
    ),
    'regression/model_error': (
        ('noise correlates, but model errors count as if it did not',
         'information / correlation, score / correlation', 'information, score'),
        ('friction by load known joint by joint',
         'np.where(np.isin(groups, OF_LOAD), 0, joints)', 'joints'),
        ('zeros that wander leave the mean as it is',
         'range(WAVES + 1)]', 'range(1, WAVES + 2)]'),
        ('discrepancy without its mean', 'np.outer(mean, mean) + posterior', 'posterior'),
    ),
    'regression/observation_system': (
        ('noise that the decimation leaves taken for all of it',
         'band=NOISE_BAND if keep > 1 else 1.0', 'band=1.0'),
        ('torque decimated without its filter',
         'filter_without_phase(signals, FILTER_ORDER, FILTER_BAND / keep, pad, keep)',
         'signals[..., ::keep]'),
        ('W and torque filtered apart',
         'decimate(tau[rows].T, keep)[:, own]', 'tau[start:stop:keep].T'),
    ),
    'replay/replay_problem': (
        ('5/ω_n transient kept',
         'return max(slowest, min(', 'return 0.0 * max(slowest, min('),
    ),
    'replay/simulated_observation': (
        ('noise that the decimation leaves taken for all of it',
         'NOISE_BAND if replay.decimation > 1 and not replay.restart else 1.0', '1.0'),
        ('dry friction by the sign of the speed alone', 'list(slip_columns(robot, slip))', '[]'),
        ('held joints are fitted', '~held.T)', 'np.ones_like(held.T))'),
    ),
    'replay/didim': (
        ('mixing of steps with the wrong sign', 'fits[-1] - mixing', 'fits[-1] + mixing'),
        ('gains never scaled', 'inertia / replay.tuned_inertia', 'np.ones_like(inertia)'),
    ),
    'mixed/variances': (
        ('a joint may get worse', 'or self._guards(errors)', 'or True'),
    ),
    'signals/preparation': (
        ('noise between periods over all of them',
         '(len(periods) - 1) * periods.shape[1]',
         'len(periods) * len(periods) * periods.shape[1]'),
        ('slow rows dropped for friction with a shape there',
         'np.where(shaped, clear & inner[:, None], moving)', 'moving'),
        ('standstill kept for friction that jumps',
         'np.where(steps, every & all_within(turning, decimation // CLEAR), every)', 'every'),
        ('transients at the ends kept',
         'moving[:edge] = moving[len(moving) - edge :] = False', 'pass'),
        ('motors that turn with several joints may stand',
         'turning[:, coupling.ratios != 0.0] &= shared', 'pass'),
    ),
    'regression/delays': (
        ('delays of 1 σ removed',
         'SIGNIFICANT_SIGMAS, SIGNIFICANT_SHARE = ',
         'SIGNIFICANT_SIGMAS, SIGNIFICANT_SHARE = 0.2 * '),
        ('delays that explain nothing removed',
         'return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))', 'return True'),
        ('hold of a whole period', 'return (best - 0.5) * period', 'return best * period'),
        ('delay of the wrong sign',
         'np.interp(time + d, time, column)', 'np.interp(time - d, time, column)'),
        ('rows of reversals used for delays',
         'moving[1:] &= samples.dq[1:] * samples.dq[:-1] > 0.0', 'pass'),
    ),
}  # fmt: skip

# Drawn mutations that change no result, by module and change, with the reason.
EQUIVALENT: dict[tuple[str, str], str] = {
    (
        'model/base_parameters',
        'sign: R[:, column] - basis @ (basis.T @ R[:, column]) → '
        '((R[:, column]) + (basis @ (basis.T @ R[:, column])))',
    ): 'the second projection undoes it',
    (
        'model/base_parameters',
        'constant: 0.1 → 0.30000000000000004',
    ): 'what analytic functions depend on in one range of positions they do in any',
    (
        'model/base_parameters',
        'sign: -np.pi → (np.pi)',
    ): 'what analytic functions depend on in one range of positions they do in any',
    (
        'model/inertial_columns',
        'branch skipped: self.chain[place] == self.link → False',
    ): 'the general product has the same zeros and ones of the own axis: this only saves it',
    (
        'regression/observation_system',
        'factor dropped: 4 * overlap → (4)',
    ): 'blocks of rows are shorter, what is in them is the same',
    (
        'model/dynamics',
        'branch skipped: not robot.followers → False',
    ): 'without followers the matrix is the identity: this only saves the product',
    (
        'model/friction',
        'call dropped: np.diff(np.sign(np.diff(q))) → (np.sign(np.diff(q)))',
    ): 'samples between turning points count as some, which only takes longer',
    (
        'model/friction',
        'call dropped: np.sign(np.diff(q)) → (np.diff(q))',
    ): 'samples between turning points count as some, which only takes longer',
    (
        'parameters/physical_consistency',
        'branch skipped: np.all(free[positive] >= 0) and all(\n'
        '        np.linalg.eigvalsh(_smat(free[block] - bound))[0] >= 0 for block in blocks\n'
        '    ) → False',
    ): 'of what is possible already the solver finds that nothing has to change',
    (
        'payload/payload',
        'sign: self.value + np.abs(self.undetermined).sum(axis=1) → '
        '((self.value) - (np.abs(self.undetermined).sum(axis=1)))',
    ): 'another body along the same directions, as far to the other side',
    (
        'payload/payload',
        'constant: 1.0 → 3.0',
    ): 'only the ratios of the lengths of columns count, and directions have no length',
}
