# shellcheck shell=bash
# A throwaway container for scripts: container_choose, container_start, container_stop. What container_start leaves in
# container_enter is the start of a command line that runs something in it, with our standard input.
#
# Both runtimes keep it only for as long as its first process has somebody at the other end of its standard input: it ends
# with the script that started it, also when that is killed. What is started here has a session of its own, so that a
# Ctrl-C at the terminal reaches only the script; for a command that nsenter has put into the container there is one more
# reason: cut off, it would be left to the machine's init, and the container can't end before that has waited for it.
#
# No command substitution here: bash 5.2 may lose a signal that comes during one to its trap.

container_lib=${BASH_SOURCE[0]%/*}

# container_choose WANTED: sets container_runtime, and container_why for the reader.
container_choose() {
    container_runtime=namespaces
    if [ "$1" = namespaces ]; then
        container_why='as asked for'
    elif ! command -v docker >/dev/null; then
        container_why='there is no docker command'
    elif ! timeout 10 docker version >/dev/null 2>&1; then
        container_why='no Docker engine answers'
    else
        container_runtime=docker container_why='an engine answers'
    fi
    if [ "$1" = docker ] && [ $container_runtime != docker ]; then
        ui_error "no Docker: $container_why"
        return 1
    fi
}

# container_start ROOT NAME
container_start() {
    local ready
    if [ "$container_runtime" = docker ]; then
        container_name=$2
        tar -C "$1" -c . | setsid --wait docker import - "$2:latest" >/dev/null
        coproc CONTAINER {
            exec setsid docker run --interactive --rm --pull=never --network=none --name "$2" "$2:latest" \
                sh -c 'echo ready && exec cat'
        }
    else
        coproc CONTAINER { exec setsid "$container_lib/ns-container" "$1"; }
    fi
    read -r ready <&"${CONTAINER[0]}" || return 1
    container_enter=(setsid --wait)
    if [ "$container_runtime" = docker ]; then
        container_enter+=(docker exec -i "$2")
    else
        hash chroot # by its path, since PATH is the container's by then
        container_enter+=(nsenter -t "${ready% *}" -m -u -i -n -p -r
            env -i PATH=/usr/local/bin:/usr/bin:/bin HOME=/root "${BASH_CMDS[chroot]}" "${ready#* }")
    fi
}

# Ends it, whatever state the start was left in.
container_stop() {
    local pid=${CONTAINER_PID-}
    if [ -n "$pid" ]; then
        eval "exec ${CONTAINER[1]}>&-"
        wait "$pid" || true
    fi
    if [ -n "${container_name-}" ]; then
        docker rm --force "$container_name" >/dev/null 2>&1 || true
        docker rmi --force "$container_name:latest" >/dev/null 2>&1 || true
    fi
}
