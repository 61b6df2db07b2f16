"""Snapshot of what a session runs with: controller, trajectories, configuration, versions."""

from collections.abc import Callable, Mapping
import threading
from typing import Any

from rclpy._rclpy_pybind11 import RCLError
from rclpy.exceptions import InvalidHandle

from ...exceptions import ControllerError
from ...files.bags import dump_session, RecordedSession
from ...files.provenance import versions
from ..common.controller import ControllerClient
from ..common.runtime import ConfiguredNode


class SessionSnapshot:
    """
    Asks the controller for its parameters, which takes its time, in threads of its own.

    Parameters
    ----------
    node : that records
    controller : whose parameters are asked for
    design : gives what the excitation runs, as plain values

    """

    def __init__(
        self,
        node: ConfiguredNode,
        controller: ControllerClient,
        design: Callable[[], Mapping[str, Any]],
    ):
        self._node, self._controller, self._read_design = node, controller, design
        self._before: dict[str, Any] = {}
        self._text: str | None = None

    def begin(self) -> threading.Thread:
        """Compose a snapshot; the thread ends when `take` returns it."""
        thread = threading.Thread(target=self._compose, daemon=True)
        thread.start()
        return thread

    def take(self) -> str | None:
        """Return the text of the last snapshot once, else None."""
        text, self._text = self._text, None
        return text

    def _compose(self) -> None:
        try:
            found = self._controller.describe().to_dict()
        except ControllerError as error:
            self._node.get_logger().warn(f'recording without controller parameters: {error}')
            found = {}
        except (InvalidHandle, RCLError):
            return  # the node ends
        self._before = self._before or found
        if found and found['gains'] != self._before['gains']:
            self._node.get_logger().warn("the controller's gains were changed while recording")
        plan = self._read_design()
        trajectories = {'trajectory': 'exciting', 'validation': 'validating'}
        self._text = dump_session(
            RecordedSession(
                controller=self._before,
                trajectories={v: plan[k] for k, v in trajectories.items() if plan.get(k)},
                configuration=self._node.values,
                versions=versions(),
                values={
                    'gains_after': found.get('gains', {}),
                    'design': {k: v for k, v in plan.items() if k not in trajectories},
                },
            )
        )
