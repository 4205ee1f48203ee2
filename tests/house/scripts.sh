#!/bin/sh
# Every shell script parses, and none needs bash but .ci/run: scripts.sh ROOT
set -eu
cd "$1"
bad=0
for script in $(find tools tests examples -name '*.sh'); do
    sh -n "$script" || bad=1
    case "$(head -n 1 "$script")" in
    '#!/bin/sh' | '# Sourced'*) ;;
    *)
        echo "$script: first line is not #!/bin/sh" >&2
        bad=1
        ;;
    esac
done
bash -n .ci/run || bad=1
exit $bad
