# robotid_ros on the official image of ROS 2 Jazzy. Not built so far: see docs/releasing.md.
#   docker build -t robotid_ros .
#   docker run --rm robotid_ros robotid demo scara
#   docker run --rm -it --net=host --ipc=host robotid_ros robotid doctor
FROM ros:jazzy-ros-base

WORKDIR /ws
COPY . src/robotid_ros
# rosdep has no key for Clarabel; what needs Gazebo is left out of an image without a screen.
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3-pip \
 && rosdep update --rosdistro jazzy \
 && rosdep install --from-paths src --ignore-src -y --rosdistro jazzy \
      --skip-keys "gz_ros2_control ros_gz_sim ros_gz_bridge" \
 && pip install --break-system-packages --no-cache-dir clarabel argcomplete \
 && rm -rf /var/lib/apt/lists/*
RUN . /opt/ros/jazzy/setup.sh && colcon build --packages-select robotid_ros

RUN printf '#!/bin/bash\nset -e\n. /opt/ros/jazzy/setup.bash\n. /ws/install/setup.bash\nexec "$@"\n' > /entry.sh \
 && chmod +x /entry.sh
ENV PATH=/ws/install/robotid_ros/lib/robotid_ros:$PATH
WORKDIR /data
ENTRYPOINT ["/entry.sh"]
CMD ["robotid", "--help"]
