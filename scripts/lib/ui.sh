# shellcheck shell=bash disable=SC2034
# What the scripts print: plain text, with colours on a terminal only (https://no-color.org is honoured).

if [ -t 1 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ]; then
    bold=$'\e[1m' dim=$'\e[2m' green=$'\e[32m' red=$'\e[31m' plain=$'\e[0m'
else
    bold='' dim='' green='' red='' plain=''
fi

ui_title() { printf '\n%s%s%s\n' "$bold" "$1" "$plain"; }

# A fact, as "name   value".
ui_fact() { printf '  %-11s %s\n' "$1" "$2"; }

ui_sent() { printf '  %s-->%s %s%s%s\n' "$green" "$plain" "$dim" "$1" "$plain"; }

# Text of any number of lines that came back.
ui_got() {
    local line
    while IFS= read -r line; do printf '  %s<--%s %s\n' "$green" "$plain" "$line"; done <<<"${1%$'\n'}"
}

# A heading with a time in microseconds at its right.
ui_call() { printf '\n  %s%-86s%s %4d.%d ms\n' "$bold" "$1" "$plain" $(($2 / 1000)) $(($2 % 1000 / 100)); }

ui_error() { printf '%s%s%s\n' "$red" "$1" "$plain" >&2; }

# Sets `now`: microseconds.
ui_clock() { now=${EPOCHREALTIME/[.,]/}; }
