/* The texts are short on purpose: they are sent with every call. Each line is whole by itself.
 *
 * P  the PATH that was found: ours is started with it, but no program is looked for there (way, below)
 * J  where we began, and where the server is to be        u  the uid        V  another that counts as root
 * S  the end of the directory's name for it               N  its mounts without execution
 * r  runs the program as anybody would                    R  becomes it: its server is no orphan then
 * B  runs a program, or BusyBox's of that name            D  removes a file, or empties it where nothing
 * removes: in what nobody else can write to
 *
 * A target is shared with people who would like to have their program run, or something of ours removed, as
 * us. So nothing is run, looked at or removed by its path: the shell goes into the directory (c), makes sure
 * of where it has come to (I), and then works on names in there. */
#include "host/inject/script.h"

#include "commands/settle/settle.h"

/* Everybody may enter the root directory. A shell that denies it has an answer about rights that is worth
 * nothing (a filter of system calls refuses what it asks with): then what is there is tried. */
static const char prelude[] = "P=$PATH;J=$PWD;PATH=/usr/bin:/bin:/usr/sbin:/sbin\n"
                              "g=$(umask)||exit;R(){ umask $g;PATH=$P;exec \"$@\";};r(){ (R \"$@\");}\n"
                              "_r=-r;_w=-w;_x=-x;[ -x / ]||{ _r=-e;_w=-e;_x=-e;}\n";

static const char remover[] = "B(){ \"$@\"||busybox \"$@\";}\n"
                              "D(){ B rm -f \"$1\"||[ -h \"$1\" ]||:>|\"$1\";}\n";

/* c DIR: goes there, and has not come through a link at its end. l: lists, by number. */
static const char entering[] =
    "c(){ cd -P \"${1%/*}/\"&&e=${PWD%/}/${1##*/}&&[ ! -h \"./${1##*/}\" ]&&cd -P \"./${1##*/}\"&&"
    "[ \"$PWD\" = \"$e\" ];}\n"
    "l(){ ls -ldn \"$@\"||busybox ls -ldn \"$@\"||stat -c '%A 1 %u 0 %n' \"$@\";}\n";

/* K [FILE]: whether root and we alone can change what is in here, the file and what is above: of the
 * directory itself and its parents as they are now, whatever path has led to it. Sticky will do above. 2:
 * nothing lists.
 *
 * I [FILE]: K, or what can be had by the shell's own means: owners (A, of what is above), and for a directory
 * of ours the modes of it and of the file, which chmod -c tells by saying nothing. */
static const char inside[] =
    "K(){ e=.;b=$PWD;set -- . \"$@\";while [ \"$b\" ];do e=$e/..;b=${b%/*};set -- \"$@\" $e;done;"
    "l \"$@\"|(k=0;while read -r m a o b;do case $o in 0|$u|$V);;*)exit 1;;esac;"
    "case $m$b in [-d]???" /* no trigraph */ "?-?"
    "?-*|d????????[tT]*..);;*)exit 1;;esac;k=$((k+1));done;"
    "[ $k = $# ]&&exit;[ $k = 0 ]&&exit 2;exit 1);}\n"
    "I(){ K \"$@\";k=$?;[ $k = 2 ]||return $k;[ -O . ]&&A||return;[ ! \"$1\" ]||{ [ -O \"$1\" -a ! -h \"$1\" "
    "]&&"
    "case $PWD in */" SETTLE_DIR "*)! command -v chmod>&2||"
    "{ a=$(chmod -c 700 .&&chmod -c 700 \"$1\")&&[ ! \"$a\" ];};;esac;};}\n";

/* Whether what we write in here is safe until it runs: then it looks itself at what is above (settle). Where
 * nothing lists, a directory of ours that has been there is made private. */
static const char owning[] =
    "I(){ [ -O . ]&&case $(l .) in d???" /* no trigraph */ "?-?"
    "?-*);;'')case $PWD in */" SETTLE_DIR "*)[ \"$Q\" ]||chmod 700 .||:;;esac;;*)false;;esac;}\n";

static const char whoami[] =
    "u=$(id -u)||u=${EUID:-$UID}\n"
    "[ \"$u\" ]||while read -r a b c d;do case $a in Uid:)u=$c;;esac;done</proc/self/status\n"
    "S=;[ \"$u\" = 0 ]||S=-$u\n";

/* A: root owns all that is above. Not asked of others, nor where the root directory isn't ours. Programs that
 * are not in the usual places are looked for on the PATH, in what is root's with all above: a container's
 * PATH may begin with a directory of its agent's. */
static const char way[] =
    "A(){ [ \"$u\" = 0 -a -O / ]||return 0;e=.;b=$PWD;while [ \"$b\" ];do e=$e/..;b=${b%/*};"
    "[ -O $e ]||return;done;}\n"
    "command -v ls>&2||[ \"$u\" != 0 ]||{ a=$P:/usr/local/bin:;while [ \"$a\" ];do d=${a%%:*};a=${a#*:};"
    "case $d in /*)! (cd -P \"$d\"&&[ -O . ]&&A)||PATH=$PATH:$d;;esac;done;}\n";

/* The number for users whom the namespace doesn't know, where it has none whom it knows and the root
 * directory is theirs (core/safe_path.c): where that is root's, they are people like any. */
static const char strangers[] =
    "V=0;[ ! $_r /proc/self/uid_map ]||{ V=65534;while read -r a b c;do case $c in ?????????*)V=0;;"
    "*)[ $a -gt 65534 ]||[ $((a+c)) -le 65534 ]||V=0;;esac;done</proc/self/uid_map;"
    "[ $V = 0 ]||l /|(read -r m a o b;[ \"$o\" = $V ])||V=0;}\n";

/* L: reads what is mounted, which takes a shell as long as all the rest: M mounts that are worth a try, N
 * those that allow no execution. */
static const char mounts[] =
    "M=;N=' ';L(){ echo \"a -\";[ $_r /proc/mounts ]&&while read -r a b c d e;do case $c in "
    "tmpfs|ramfs|overlay|ext*|xfs|btrfs|zfs|"
    "f2fs|nfs*|9p|fuse*|virtiofs|bcachefs)case $b in "
    "/dev|*\\\\*)continue;;esac;case ,$d, in *,noexec,*)N=\"$N$b \";;"
    "*,ro,*);;*)M=\"$M $b\";;esac;;esac;done</proc/mounts;}\n";

static const char facts[] =
    "w(){ echo;echo " SCRIPT_MARK
    ";echo \"u $u\";if s=$(uname -s);then echo \"s $s\";echo \"m $(uname -m)\";else "
    "for a in /proc/self/exe /bin/sh;do [ $_r $a ]&&IFS= read -r e<$a&&break;done;echo \"e $e\";fi;"
    "for a in /etc/os-release /usr/lib/os-release;do [ $_r $a ]&&{ while read -r b;do case $b in "
    "ID=*|VERSION_ID=*|"
    "PRETTY_NAME=*)echo \"o $b\";;esac;done<$a;break;};done;"
    "for a in /lib/ld-* /lib64/ld-*;do [ -e \"$a\" ]&&echo \"l $a\";done;}\n";

/* t PLACE...: a directory of ours in each. y DIR, to be defined before, does what is wanted with it. F: one
 * of the first two can be written to, and the mounts don't matter yet. */
static const char places[] =
    "t(){ for p do [ \"$G\" ]||[ ! -d \"$p\" ]||[ \"${p#/}\" = \"$p\" ]||y \"${p%/}/" SETTLE_DIR
    "$S\";done;}\n"
    "T(){ t /opt /usr/local;[ \"$F$M\" ]||L;t /var/tmp /run /tmp /dev/shm \"/run/user/$u\" "
    "\"$HOME\" \"$TMPDIR\" $M \"$PWD\" / /dev;}\n";

/* C: what copies stdin to stdout. q: makes the directory d, by m, and goes there; Q: the topmost one that had
 * to be made, which U removes again, with those below it. v: makes the file f, which has not been there. k:
 * its size. */
static const char writer[] =
    "for a in cat dd tee 'busybox cat';do command -v ${a% cat}>&2&&{ C=$a;break;};done;"
    "[ \"$C\" ]||{ echo h cat;exit;}\n"
    "umask 077\n"
    "k(){ s=$(stat -c %s \"$f\"||wc -c<\"$f\");}\n"
    "U(){ while [ \"$Q\" ]&&{ rmdir \"$d\"||[ ! -e \"$d\" ];}&&[ \"$d\" != \"$Q\" ];do d=${d%/*};done;}\n"
    "m(){ [ -d \"$1/\" ]||{ m \"${1%/*}\"&&{ B mkdir \"$1\"||[ -d \"$1\" ];};};}\n"
    "q(){ Q=;[ \"$d\" != \"$W\" ]||Q=$w;e=$d;while [ \"$e\" ]&&[ ! -d \"$e\" ];do Q=$e;e=${e%/*};done;"
    "a=x;m \"$d\"&&{ a=o;c \"$d\"&&I&&return;};echo \"$a $d\";U;return 1;}\n"
    "v(){ e=$( (set -C;:>\"$f\") 2>&1)&&return;echo \"$d: ${e##*: }\">&2;U;return 1;}\n";

/* p DIR: writes the file there and has it settle. o: it has been written before, and can be read from 8; i:
 * hands it out. h: sets the mode, or takes it from the shell's own file. z: says whether the file system is
 * mounted without execution. It prints a letter and the directory for each that didn't do: o not safe, x not
 * to be written to, f full, c cut short, r not run, with the exit status; and h with a program that is
 * missing. Y: gives this directory up; X: all of them. E: removes the pieces. */
static const char placer[] =
    "h(){ B chmod 700 \"$f\"||{ cp /bin/sh \"$f.x\"&&$C<\"$f\">|\"$f.x\"&&{ D "
    "\"$f\";f=$f.x;};};}\n"
    "z(){ l=;m=;while read -r a b c e q;do case $d/ in \"${b%/}\"/*)[ ${#b} -lt ${#m} ]||{ "
    "m=$b;l=$e;};;esac;done"
    "</proc/mounts;case ,$l, in *,noexec,*)echo noexec;;esac;}\n"
    "Y(){ D \"$f\";U;}\n"
    "X(){ Y;exit;}\n"
    "p(){ d=$1;f=./$t;shift;q||return;v||{ echo \"x $d\";return;};"
    "if [ \"$o\" ];then $C>|\"$f\"<&8;else i>|\"$f\";fi||{ echo \"f $d\";X;};"
    "k;[ \"$o\" ]||[ -z \"$s\" ]||[ $s -eq $Z ]||{ echo \"c $d\" $s;X;};"
    "h||{ echo h chmod;X;};exec 8<\"$f\";o=1;"
    "r \"$f\" settle --at \"$d/${f#./}\" --from \"$J\" --sums $H --name \"$n\" ${Q:+--made \"$Q\"} "
    "\"$@\"<&- 8<&-;s=$?;"
    "case $s in 0)E;cd \"$J\";unset OLDPWD;R \"$d/$n\" start-server<&- 8<&-;;3)X;;esac;echo \"r $d\" $s "
    "$(z);Y;}\n"
    "trap 'D \"$f\";exit 1' 1 2 13 15\n";

void script_shell(struct argv *out)
{
    argv_add(out, "/bin/sh");
    argv_add(out, "-c");
    argv_add(out, "while IFS= read -r l&&[ \"$l\" != . ];do eval \"$l\";done;main");
}

static void assign(struct buf *out, const char *name, const char *value)
{
    buf_addf(out, "%s=", name);
    argv_quote(out, value ? value : "");
    buf_addc(out, '\n');
}

/* What else there is to do, as words of a command. */
static void add_wishes(struct buf *out, const struct script_options *o)
{
    if (o->links) {
        buf_adds(out, " --links ");
        argv_quote(out, o->links);
    }
    if (o->replace)
        buf_adds(out, " --replace");
    if (o->upgrade)
        buf_adds(out, " --upgrade");
}

static void begin(struct buf *out, const struct script_options *o)
{
    buf_adds(out, prelude);
    assign(out, "n", o->name);
    assign(out, "H", o->sums);
}

/* Goes through all places, or the one that was named. */
static void visit(struct buf *out, const struct script_options *o)
{
    if (!o->dir) {
        buf_adds(out, o->everywhere ? "L;T" : "T");
        return;
    }
    buf_adds(out, "p=/;y ");
    argv_quote(out, o->dir);
}

/* For what is there already. */
static void add_checks(struct buf *out)
{
    buf_adds(out, whoami);
    buf_adds(out, entering);
    buf_adds(out, way);
    buf_adds(out, strangers);
    buf_adds(out, inside);
}

void script_recon(struct buf *out, const struct script_options *o, enum script_after after)
{
    begin(out, o);
    add_checks(out);
    buf_adds(out, mounts);
    buf_adds(out, facts);
    buf_adds(out, "x(){ f=$1/$n;[ -d \"$1\" ]&&(c \"$1\"&&[ -f \"./$n\" ]&&[ $_x \"./$n\" ]&&I \"./$n\"&&"
                  "echo \"b $f\"&&r \"./$n\" settle --at \"$f\" --from \"$J\" --sums $H");
    add_wishes(out, o);
    buf_adds(out, "<&-)&&G=$f;}\n");
    buf_adds(out, places);
    buf_adds(out, "y(){ x \"$1\";[ ! $_w \"$p\" ]||case $N in *\" $p \"*)echo \"n $1\";;*)F=1;echo \"w "
                  "$1\";;esac;}\nmain(){ w;");
    visit(out, o);
    buf_adds(out, ";echo " SCRIPT_END);
    if (after == SCRIPT_ENDS)
        buf_adds(out, ";[ \"$G\" ]&&R \"$G\" start-server<&-;:");
    if (after == SCRIPT_CALLS)
        buf_adds(out, ";[ \"$G\" ]&&{ echo " SCRIPT_CALL ";R \"$G\" exec --whole --detect;}");
    if (after == SCRIPT_GOES_ON)
        buf_adds(out, ";[ \"$G\" ]&&R \"$G\" start-server<&-;main(){ :;};PATH=$P;while IFS= read -r l&&[ "
                      "\"$l\" != . ];do eval \"$l\";"
                      "done;main");
    buf_adds(out, ";}\n.\n");
}

void script_piece(struct buf *out, const struct script_options *o, const char *dir, int n)
{
    begin(out, o);
    assign(out, "u", o->uid);
    buf_adds(out, entering);
    buf_adds(out, owning);
    buf_adds(out, way);
    buf_adds(out, remover);
    buf_adds(out, writer);
    assign(out, "d", dir);
    assign(out, "t", o->temporary);
    buf_addf(out, "f=./$t.%d\nmain(){ q||return;D \"$f\";v;$C>|\"$f\";k;echo \"k\" $s;echo \"q $Q\";}\n.\n",
             n);
}

void script_clean(struct buf *out, const struct script_options *o, const struct argv *dirs)
{
    begin(out, o);
    buf_adds(out, entering);
    buf_adds(out, owning);
    buf_adds(out, remover);
    assign(out, "t", o->temporary);
    buf_adds(out, "y(){ (c \"$1\"&&I&&for f in \"./$t\"*;do [ ! -e \"$f\" ]||D \"$f\";done);"
                  "case $1 in *" SETTLE_DIR "*)rmdir \"$1\";;esac;}\nmain(){ :");
    for (size_t i = 0; i < dirs->n; i++) {
        buf_adds(out, ";y ");
        argv_quote(out, dirs->words[i]);
    }
    buf_adds(out, ";}\n.\n");
}

/* One that can't be run, or knows no removal, is removed as any file. What is ours in a place that is not
 * safe is left, and told (e); so is what may be there, where a look breaks off (no process can be started):
 * it is no look that has found nothing. */
void script_eject(struct buf *out, const struct script_options *o)
{
    begin(out, o);
    add_checks(out);
    buf_adds(out, mounts);
    buf_adds(out, places);
    buf_adds(out, remover);
    buf_adds(out,
             "y(){ d=$1;f=$d/$n;[ ! -d \"$d\" ]||(c \"$d\"&&[ -O . ]||exit 0;"
             "I||{ [ ! -f \"./$n\" ]||{ echo \"e $f\";echo \"others can write there or above\">&2;};exit 0;};"
             "for a in ./" SETTLE_TEMPORARY "*;do [ ! -f \"$a\" ]||D \"$a\";done;"
             "[ -f \"./$n\" ]||{ case $d in */" SETTLE_DIR "*)rmdir \"$d\";;esac;exit 0;};I \"./$n\"||exit 0;"
             "echo \"b $f\";r \"./$n\" settle --at \"$f\" --remove<&-;case $? in 0);;1|4)echo \"e $f\";;"
             "*)[ \"$PWD\" != \"$d\" ]||{ D \"./$n\";D \"./.$n.inject\";rmdir \"$d\";};;esac;exit 0)||"
             "echo \"e $f\";}\n");
    buf_adds(out, "main(){ echo " SCRIPT_MARK ";");
    visit(out, o);
    buf_adds(out, ";echo " SCRIPT_END ";}\n.\n");
}

void script_place(struct buf *out, const struct script_options *o, const struct argv *dirs, size_t size,
                  int pieces, const char *made)
{
    begin(out, o);
    assign(out, "u", o->uid);
    assign(out, "t", o->temporary);
    buf_addf(out, "Z=%zu\n", size);
    buf_adds(out, entering);
    buf_adds(out, owning);
    buf_adds(out, way);
    buf_adds(out, remover);
    buf_adds(out, writer);
    if (pieces > 0) {
        assign(out, "W", dirs->words[0]);
        assign(out, "w", made);
        buf_addf(
            out,
            "i(){ (c \"$W\"&&I&&{ a=0;while [ $a -lt %d ];do $C<\"./$t.$a\"||exit;a=$((a+1));done;});}\n",
            pieces);
        buf_addf(
            out,
            "E(){ (c \"$W\"&&I&&{ a=0;while [ $a -lt %d ];do D \"./$t.$a\";a=$((a+1));done;});}\ntrap E 0\n",
            pieces);
    } else {
        buf_adds(out, "E(){ :;}\ni(){ $C;}\n");
    }
    buf_adds(out, placer);
    buf_adds(out, "main(){ o=;");
    for (size_t i = 0; i < dirs->n; i++) {
        buf_adds(out, "p ");
        argv_quote(out, dirs->words[i]);
        add_wishes(out, o);
        buf_addc(out, ';');
    }
    buf_adds(out, "}\n.\n");
}
