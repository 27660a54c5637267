/* Interpreters tell in the words of a shell, through the same channel, before each prompt of theirs; what
 * they are given is compiled as one unit, and a statement of it shows its value as one that was typed does.
 */
#include "session_repl.h"

/* Python: how it tells, and how it takes a command. What has been raised since it told before is known by
 * what `sys` keeps of it. */
#define PYTHON_TELL                                                                                          \
    "def __start():\n"                                                                                       \
    " import os,select,sys\n"                                                                                \
    " last=[None,None]\n"                                                                                    \
    " def tell():\n"                                                                                         \
    "  now=[getattr(sys,n,None) for n in ('last_value','last_traceback')]\n"                                 \
    "  e=None if now[0] is last[0] and now[1] is last[1] else now[0]\n"                                      \
    "  last[:]=now\n"                                                                                        \
    "  try:\n"                                                                                               \
    "   try:text=str(e)\n"                                                                                   \
    "   except Exception:text=''\n"                                                                          \
    "   try:cwd=os.getcwd()\n"                                                                               \
    "   except OSError:cwd=''\n"                                                                             \
    "   s='\\x01\x02X%d\\0%d\\0%s\\0%s\\0%s\\0'%(os.getpid(),0 if e is None else 130 if "                    \
    "isinstance(e,KeyboardInterrupt) else 1,cwd,'' if e is None else type(e).__name__,"                      \
    "text[:4000].replace('\\0',''))\n"                                                                       \
    "   f=os.open('@',os.O_RDWR|os.O_NOCTTY)\n"                                                              \
    "   try:\n"                                                                                              \
    "    os.write(f,s.encode(errors='backslashreplace'))\n"                                                  \
    "    if select.select([f],[],[],5)[0]:os.read(f,1)\n"                                                    \
    "   finally:os.close(f)\n"                                                                               \
    "  except(OSError,KeyboardInterrupt):pass\n"                                                             \
    " def take():\n"                                                                                         \
    "  f=os.open('@',os.O_RDWR|os.O_NOCTTY)\n"                                                               \
    "  try:\n"                                                                                               \
    "   s,p=b'',b' '\n"                                                                                      \
    "   while p and select.select([f],[],[],5)[0]:\n"                                                        \
    "    p=os.read(f,4096)\n"                                                                                \
    "    s+=p\n"                                                                                             \
    "  finally:os.close(f)\n"                                                                                \
    "  return bytes.fromhex(s[:-2].decode()).decode() if s[-2:]==b'.\\n' else ''\n"

const char repl_python[] = PYTHON_TELL
    " import ast,builtins,__future__\n"
    " mask=flags=0\n"
    " for n in __future__.all_feature_names:mask|=getattr(__future__,n).compiler_flag\n"
    " def run():\n"
    "  nonlocal flags\n"
    "  f=sys._getframe(1)\n"
    "  try:\n"
    "   for n in compile(take(),'<stdin>','exec',ast.PyCF_ONLY_AST|flags,True).body:\n"
    "    c=compile(ast.Interactive([n]),'<stdin>','single',flags,True)\n"
    "    flags|=c.co_flags&mask\n"
    "    exec(c,f.f_globals,f.f_locals)\n"
    "  except SystemExit:raise\n"
    "  except BaseException as e:\n"
    "   t=e.__traceback__.tb_next\n"
    "   sys.last_type,sys.last_value,sys.last_traceback=type(e),e.with_traceback(t),t\n"
    "   sys.last_exc=e\n"
    "   sys.excepthook(type(e),e,t)\n"
    "  finally:arm()\n"
    " class Prompt(str):\n"
    "  def __str__(s):\n"
    "   tell()\n"
    "   return s[:]\n"
    " def arm():\n"
    "  if not isinstance(sys.ps1,Prompt):sys.ps1=Prompt(sys.ps1)\n"
    " os.close(3)\n"
    " os.environ.pop('PYTHONSTARTUP',0)\n" /* the other one is looked at behind this, from 3.13 on */
    " if sys.version_info<(3,13):os.environ.pop('PYTHON_BASIC_REPL',0)\n"
    " builtins.__run=run\n"
    " sys.ps1,sys.ps2='>>> ','... '\n"
    " own=bytes.fromhex('\x03').decode()\n"
    " if own:\n"
    "  os.environ['PYTHONSTARTUP']=own\n"
    "  with open(own) as f:exec(compile(f.read(),own,'exec'),globals())\n"
    " arm()\n"
    "__start()\n"
    "del __start\n";

const char repl_ipython[] = PYTHON_TELL
    " ip=get_ipython()\n"
    " ip.separate_in=''\n"
    " def ask(tokens):return input(''.join(t for _,t in tokens))\n"
    " def prompt():\n"
    "  sys.stdout.flush()\n"
    "  tell()\n"
    "  s=ask(ip.prompts.in_prompt_tokens())\n"
    "  if s=='__run()':return take()\n"
    "  while ip.check_complete(s)[0]=='incomplete':s+='\\n'+ask(ip.prompts.continuation_prompt_tokens(4))\n"
    "  return s\n"
    " ip.prompt_for_code=prompt\n"
    " try:os.close(3)\n"
    " except OSError:pass\n"
    "__start()\n"
    "del __start\n";

/* It interrupts what it evaluates by a handler of its own, which one of ours would take away. */
const char repl_node[] =
    "'use strict';"
    "const fs=require('fs'),repl=require('repl'),at='@';"
    "fs.closeSync(3);"
    "delete process.env.NODE_REPL_EXTERNAL_MODULE;delete process.env.NODE_PRESERVE_SYMLINKS_MAIN;"
    "let error=null,busy=false,unfinished=false;"
    "function tell(){"
    "let cwd='',m='',t='';try{cwd=process.cwd()}catch{}"
    "if(error){const e=error.e;t=e instanceof Error?e.name:typeof e;"
    "try{m=String(e instanceof Error?e.message:e).slice(0,4000).replace(/\\0/g,'')}catch{}}"
    "const s=['\\x01\x02X'+process.pid,error?1:0,cwd,t,m,''].join('\\0');error=null;"
    "const f=fs.openSync(at,fs.constants.O_RDWR|fs.constants.O_NOCTTY);"
    "fs.writeSync(f,s);fs.readSync(f,Buffer.alloc(1));fs.closeSync(f)}"
    "function take(){let s='',n=1;const "
    "b=Buffer.alloc(4096),f=fs.openSync(at,fs.constants.O_RDWR|fs.constants.O_NOCTTY);"
    "while(n){n=fs.readSync(f,b);s+=b.toString('latin1',0,n)}fs.closeSync(f);"
    "return !s.endsWith('.\\n')?'':Buffer.from(s.slice(0,-2).replace(/\\n/g,''),'hex').toString()}"
    "class Repl extends repl.REPLServer{displayPrompt(p){if(!unfinished)tell();super.displayPrompt(p)}}"
    "const r=new Repl({prompt:'> ',terminal:false,useGlobal:true,breakEvalOnSigint:true});"
    "const evaluate=r.eval;"
    "r.eval=function(code,context,file,done){"
    "const unit=code.trim()==='__run';if(unit)code=take();"
    "const c=/^\\s*\\.(\\w+)\\s*(.*?)\\s*$/.exec(code);"
    "if(unit&&c&&r.commands[c[1]])return r.commands[c[1]].action.call(r,c[2]);"
    "busy=true;process.off('SIGINT',interrupt);"
    "evaluate.call(r,code,context,file,(e,v)=>{"
    "unfinished=!unit&&e instanceof repl.Recoverable;"
    "if(unit&&e instanceof repl.Recoverable)e=e.err;"
    "over(e&&!unfinished&&{e});"
    "done(e,v)});"
    "hear()};"
    "function over(e){if(e)error=e;busy=false;hear()}"
    "if(r._domain)r._domain.prependListener('error',e=>over({e}));"
    "function interrupt(){if(busy){r.emit('SIGINT');return}"
    "unfinished=false;r.clearBufferedCommand();r.output.write('\\n');r.displayPrompt()}"
    "function hear(){process.off('SIGINT',interrupt);process.on('SIGINT',interrupt)}"
    "hear();"
    "r.on('exit',()=>process.exit());";

#define IN_LINE 500 /* bytes of the command */

void repl_put(struct buf *out, const char *command, size_t n, const struct channel *channel)
{
    (void)channel;
    for (size_t i = 0; i < n; i++)
        buf_addf(out, "%02x%s", (unsigned char)command[i], i % IN_LINE == IN_LINE - 1 ? "\n" : "");
    buf_adds(out, "\n.\n");
}
