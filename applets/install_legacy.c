#include "install_legacy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "applet.h"
#include "buf.h"
#include "err.h"
#include "io.h"
#include "mem.h"
#include "self.h"

/* The first lines of each file; by the second we know our own. The program's path follows. */
static const char HEAD[] = "#!/usr/bin/env python3\n"
                           "# Written by `toolbox --install-legacy`, which may replace it.\n"
                           "TOOLBOX = ";

/* web_client.py [--session_name=S] COMMAND ARGUMENT...: prints NAME :  VALUE of each member of the result. A
 * page's text can't say anything in the name of the tool: a line of it that begins as a member does is
 * indented. Without a session's name the newest is used, and one is opened where there is none. */
static const char WEB_CLIENT[] =
    "import json, re, subprocess, sys\n"
    "\n"
    "PARAMS = {\"web_go\": [\"url\"], \"web_click\": [\"element_id\"], \"web_scroll\": [\"direction\"],\n"
    "          \"web_forward\": [], \"web_back\": [], \"web_refresh\": [],\n"
    "          \"web_type\": [\"element_id\", \"text\"], \"web_type_submit\": [\"element_id\", \"text\"]}\n"
    "MEMBER = re.compile(r\"^(?=(error|main_content|web_at|web_url|info)\\s*:)\", re.M)\n"
    "\n"
    "def rpc(method, **params):\n"
    "    request = json.dumps({\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": method, \"params\": params})\n"
    "    run = subprocess.run(TOOLBOX + [\"exec\"], input=request.encode(), stdout=subprocess.PIPE)\n"
    "    if run.returncode != 0:\n"
    "        sys.exit(1)  # it has said why\n"
    "    answer = json.loads(run.stdout.decode())\n"
    "    if answer.get(\"error\", {}).get(\"code\") == -32099:\n"
    "        return {\"error\": answer[\"error\"][\"message\"]}\n"
    "    if \"error\" in answer:\n"
    "        sys.exit(\"error: \" + answer[\"error\"][\"message\"])\n"
    "    return answer[\"result\"]\n"
    "\n"
    "def new_session(headful=False):\n"
    "    result = rpc(\"web_new_session\", headful=headful)\n"
    "    if \"error\" in result:\n"
    "        sys.exit(result[\"error\"])\n"
    "    return result[\"session_name\"]\n"
    "\n"
    "def main(words):\n"
    "    session = None\n"
    "    if words and words[0].startswith(\"--session_name=\"):\n"
    "        session = words.pop(0).split(\"=\", 1)[1]\n"
    "    elif len(words) > 1 and words[0] == \"--session_name\":\n"
    "        session = words.pop(1)\n"
    "        words.pop(0)\n"
    "    command, words = (words[0] if words else None), words[1:]\n"
    "    if command not in PARAMS or len(words) < len(PARAMS[command]):\n"
    "        sys.exit(\"usage: web_client.py [--session_name=NAME] \" + \"|\".join(PARAMS) + \" "
    "[ARGUMENT]...\")\n"
    "    if PARAMS[command]:\n"
    "        last = len(PARAMS[command]) - 1\n"
    "        words[last:] = [\" \".join(words[last:])]\n"
    "    params = dict(zip(PARAMS[command], words))\n"
    "    if \"element_id\" in params and not params[\"element_id\"].isdigit():\n"
    "        print(\"error :  there is no element \" + repr(params[\"element_id\"]))\n"
    "        return\n"
    "    if \"element_id\" in params:\n"
    "        params[\"element_id\"] = int(params[\"element_id\"])\n"
    "    if not session:\n"
    "        open_sessions = rpc(\"web_list_sessions\")\n"
    "        session = open_sessions[-1][\"session_name\"] if open_sessions else new_session()\n"
    "    result = rpc(command, session_name=session, **params)\n"
    "    for name in (\"web_url\", \"main_content\", \"web_at\", \"error\"):\n"
    "        if result.get(name):\n"
    "            print(name, \": \", MEMBER.sub(\" \", result[name]))\n"
    "\n"
    "if __name__ == \"__main__\":\n"
    "    main(sys.argv[1:])\n";

static const char NEW_SESSION[] = "import sys\n"
                                  "from web_client import new_session\n"
                                  "\n"
                                  "print(new_session(\"--headful\" in sys.argv[1:]))\n";

static const char MULTI_TOOL[] =
    "import os, sys\n"
    "\n"
    "words = sys.argv[1:] if sys.argv[1:2] and not sys.argv[1].lstrip().startswith(\"{\") "
    "else [\"exec\"] + sys.argv[1:]\n"
    "os.execvp(TOOLBOX[0], TOOLBOX + words)\n";

/* computer_tool.py ACTION [--NAME VALUE...]...: prints {"output", "error", "base64_image"}. */
static const char COMPUTER_TOOL[] =
    "import argparse, json, os, subprocess, sys\n"
    "\n"
    "PLACE, TEXT = (\"coordinate\", 2), (\"text\", str)\n"
    "CLICKS = [\"left_click\", \"right_click\", \"middle_click\", \"back_click\", \"forward_click\", "
    "\"double_click\", "
    "\"triple_click\"]\n"
    "ACTIONS = {**{name: [] for name in (\"screenshot\", \"cursor_position\", \"left_mouse_down\", "
    "\"left_mouse_up\", "
    "\"open_web_browser\")},\n"
    "           \"navigate\": [TEXT], \"type\": [TEXT], \"key\": [TEXT], \"hold_key\": [TEXT, (\"duration\", "
    "int)], "
    "\"mouse_move\": [PLACE],\n"
    "           **{name: [PLACE, TEXT] for name in CLICKS}, \"left_click_drag\": [(\"start_coordinate\", 2), "
    "PLACE, TEXT],\n"
    "           \"scroll\": [(\"scroll_direction\", [\"up\", \"down\", \"left\", \"right\"]), "
    "(\"scroll_amount\", int), PLACE, "
    "TEXT],\n"
    "           \"wait\": [(\"duration\", int)], \"zoom\": [(\"region\", 4)]}\n"
    "\n"
    "def arguments():\n"
    "    parser = argparse.ArgumentParser(prog=\"computer_tool\")\n"
    "    actions = parser.add_subparsers(dest=\"action\", required=True)\n"
    "    for name, takes in ACTIONS.items():\n"
    "        one = actions.add_parser(name)\n"
    "        for key, kind in takes:\n"
    "            how = {\"type\": int, \"nargs\": kind} if isinstance(kind, int) else {\"choices\": kind} if "
    "isinstance(kind, list) "
    "else {\"type\": kind}\n"
    "            lax = key == \"coordinate\" and name in CLICKS + [\"scroll\"] or key == \"text\" and "
    "len(takes) > 1 and name != "
    "\"hold_key\"\n"
    "            one.add_argument(\"--\" + key, required=not lax, **how)\n"
    "    return {key: value for key, value in vars(parser.parse_args()).items() if value is not None}\n"
    "\n"
    "def rpc(method, **params):\n"
    "    request = json.dumps({\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": method, \"params\": params})\n"
    "    run = subprocess.run(TOOLBOX + [\"exec\", \"--whole\"], input=request.encode(), "
    "stdout=subprocess.PIPE)\n"
    "    if run.returncode != 0:\n"
    "        sys.exit(1)  # it has said why\n"
    "    answer = json.loads(run.stdout.decode())\n"
    "    if \"error\" in answer:\n"
    "        if answer[\"error\"][\"code\"] != -32099:\n"
    "            sys.exit(\"An error occurred: \" + answer[\"error\"][\"message\"])\n"
    "        tell(error=answer[\"error\"][\"message\"])\n"
    "    return answer[\"result\"]\n"
    "\n"
    "def tell(output=None, error=None, base64_image=None):\n"
    "    print(json.dumps({\"output\": output, \"error\": error, \"base64_image\": base64_image}))\n"
    "    sys.exit(0)\n"
    "\n"
    "def session():\n"
    "    living = [one[\"session_name\"] for one in rpc(\"computer_list_sessions\") if one.get(\"state\") in "
    "(\"idle\", \"busy\")]\n"
    "    if living:\n"
    "        return living[-1]\n"
    "    env, mask = os.environ, os.umask(0)\n"
    "    os.umask(mask)\n"
    "    wish = {\"surroundings\": {\"env\": dict(env), \"cwd\": \"/\", \"umask\": mask}}\n"
    "    if env.get(\"DISPLAY_NUM\"):\n"
    "        wish[\"display\"] = \":\" + env[\"DISPLAY_NUM\"]\n"
    "    elif not env.get(\"DISPLAY\") and env.get(\"WIDTH\") and env.get(\"HEIGHT\"):\n"
    "        wish.update(width=int(env[\"WIDTH\"]), height=int(env[\"HEIGHT\"]))\n"
    "    return rpc(\"computer_new_session\", **wish)[\"session_name\"]\n"
    "\n"
    "if __name__ == \"__main__\":\n"
    "    action = arguments()\n"
    "    shows = action[\"action\"] != \"cursor_position\"\n"
    "    result = rpc(\"computer_action\", session_name=session(), screenshot=shows, **action)\n"
    "    tell(result.get(\"output\"), None, result.get(\"data\"))\n";

static const struct {
    const char *path, *text;
} entries[] = {
    {"/app/web_browser/web_client.py", WEB_CLIENT},
    {"/app/web_browser/web_client_new_session.py", NEW_SESSION},
    {"/opt/inspect/multi-tool-v1.py", MULTI_TOOL},
    {"/opt/inspect/tool/computer_tool.py", COMPUTER_TOOL},
};

static const char TOOL_SUPPORT[] = "/usr/local/bin/inspect-tool-support";

/* The program's path as it is seen from within the root; "toolbox", to be looked for, where it isn't in
 * there. */
static char *program_within(const char *root)
{
    char *self MEM_AUTO = self_path();
    char *real MEM_AUTO = realpath(root, NULL);
    size_t n = real ? strlen(real) : 0;
    if (n == 1)
        n = 0; /* the root itself */
    return self && real && strncmp(self, real, n) == 0 && self[n] == '/' ? mem_strdup(self + n)
                                                                         : mem_strdup("toolbox");
}

static int make_folders(char *path, size_t from)
{
    for (char *slash = path + from + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        int made = mkdir(path, 0755);
        *slash = '/';
        if (made < 0 && errno != EEXIST)
            return -1;
    }
    return 0;
}

/* True for a file of ours, and for none at all. */
static bool may_write(const char *path)
{
    struct buf text BUF_AUTO = BUF_INIT;
    const char *mark = strchr(HEAD, '\n'), *end = strchr(mark + 1, '\n');
    if (io_read_file(AT_FDCWD, path, &text) < 0)
        return errno == ENOENT;
    return memmem(buf_str(&text), text.len, mark, (size_t)(end - mark)) != NULL;
}

/* Written beside it first: a file is there whole, or not at all. */
static int put_file(const char *path, const struct buf *text)
{
    char *beside MEM_AUTO = mem_printf("%s.new", path);
    int fd FD_AUTO = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0755);
    if (fd < 0)
        return -1;
    if (fchmod(fd, 0755) == 0 && io_write_all(fd, text->data, text->len) == 0 && rename(beside, path) == 0)
        return 0;
    int failed = errno;
    unlink(beside);
    errno = failed;
    return -1;
}

static int install_entry(const char *root, const char *path, const char *body, const char *program)
{
    struct buf text BUF_AUTO = BUF_INIT;
    char *full MEM_AUTO = mem_printf("%s%s", root, path);
    buf_addf(&text, "%s[\"%s\"]\n%s", HEAD, program, body);
    if (make_folders(full, strlen(root)) < 0)
        return applet_failed("--install-legacy", "%s: %s", full, err_text(errno));
    if (!may_write(full))
        return applet_failed("--install-legacy", "%s is there, and isn't of this program: move it away",
                             full);
    if (put_file(full, &text) < 0)
        return applet_failed("--install-legacy", "%s: %s", full, err_text(errno));
    return EXIT_OK;
}

/* inspect-tool-support on the PATH, as later clients call it. */
static int install_name(const char *root, const char *program)
{
    char *full MEM_AUTO = mem_printf("%s%s", root, TOOL_SUPPORT);
    char there[PATH_MAX];
    if (program[0] != '/')
        return EXIT_OK;
    if (make_folders(full, strlen(root)) == 0 && symlink(program, full) == 0)
        return EXIT_OK;
    int failed = errno;
    ssize_t n = readlink(full, there, sizeof there);
    if (n == (ssize_t)strlen(program) && memcmp(there, program, (size_t)n) == 0)
        return EXIT_OK;
    return applet_failed("--install-legacy", "%s: %s", full, err_text(failed));
}

int install_legacy(const char *root)
{
    struct stat folder;
    if (stat(root, &folder) < 0 || !S_ISDIR(folder.st_mode))
        return applet_failed("--install-legacy", "%s: %s", root, err_text(errno ? errno : ENOTDIR));
    char *trimmed MEM_AUTO = mem_strdup(root);
    for (size_t n = strlen(trimmed); n > 0 && trimmed[n - 1] == '/'; n--)
        trimmed[n - 1] = '\0';
    char *program MEM_AUTO = program_within(root);
    if (strpbrk(program, "\"\\\n"))
        return applet_failed("--install-legacy", "the program's path can't be written into a script: %s",
                             program);
    int result = EXIT_OK;
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (install_entry(trimmed, entries[i].path, entries[i].text, program) != EXIT_OK)
            result = EXIT_FAILED;
    if (install_name(trimmed, program) != EXIT_OK)
        result = EXIT_FAILED;
    return result;
}
