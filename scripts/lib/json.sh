# shellcheck shell=bash disable=SC2034
# Just enough JSON to read the toolbox's own answers without any tool that a fresh machine may lack.

# json_string LINE KEY: sets `text` to the decoded value of the first "KEY":"…" in the line; fails where there is none.
# A quote inside a string is escaped, so the pattern can't be found inside one.
json_string() {
    local rest=${1#*"\"$2\":\""} part raw='' slashes
    [ "$rest" != "$1" ] || return 1
    while [[ $rest == *'"'* ]]; do
        part=${rest%%'"'*} rest=${rest#*'"'}
        raw+=$part
        slashes=${part##*[!\\]}
        if ((${#slashes} % 2 == 0)); then
            printf -v text %b "$raw"
            return 0
        fi
        raw=${raw%\\}\"
    done
    return 1
}

# json_members LINE: an object's members, one a line, names and values in columns; long values go on below.
json_members() {
    awk -v width=96 '
        function show(member,   colon, name, value, indent, n, words, i, line) {
            colon = index(member, ":")
            name = substr(member, 2, colon - 3)
            value = substr(member, colon + 1)
            n = split(value, words, /, /)
            line = sprintf("%-16s", name)
            for (i = 1; i <= n; i++) {
                if (i > 1 && length(line) + length(words[i]) > width) {
                    print line
                    line = sprintf("%16s", "")
                }
                line = line words[i] (i < n ? ", " : "")
            }
            print line
        }
        {
            for (i = 1; i <= length($0); i++) {
                c = substr($0, i, 1)
                if (quoted) {
                    member = member c
                    if (escaped) escaped = 0
                    else if (c == "\\") escaped = 1
                    else if (c == "\"") quoted = 0
                    continue
                }
                if (c == "\"") quoted = 1
                if (c ~ /[]}]/ && --depth == 0 || c == "," && depth == 1) {
                    if (member != "") show(member)
                    member = ""
                    continue
                }
                if (c ~ /[[{]/ && depth++ == 0) continue
                member = member c (c == "," ? " " : "")
            }
        }' <<<"$1"
}
