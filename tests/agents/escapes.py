"""Attempts to get out of the workspace, or past a rule that allows a command (B48, B49)."""

PATHS = """
../outside/k
../outside
../ws-secret/k
{base}/outside/k
{base}/ws-secret/k
/{base}/outside/k
{base}/ws/../outside/k
a/../../outside/k
sub/../../outside/k
./../outside/./k
sub/./../.././outside/k
..//outside//k
missing/../../outside/k
file:../outside/k
file://{base}/outside/k
FILE://{base}/outside/k
file://localhost{base}/outside/k
file://{base}/ws/%2e%2e/outside/k
file://{base}/ws/%2E%2E/outside/k
file://elsewhere{base}/outside/k
%2e%2e/outside/k
..%2foutside%2fk
~/k
~root/.profile
to-dir/k
to-dir
to-dir/new.txt
to-dir/deep/new.txt
to-file
to-up/outside/k
sub/to-far/k
chain/k
chain-file
to-dir/../outside/k
To-Dir/k
../WS-SECRET/k
/proc/self/root{base}/outside/k
/proc/self/cwd/../outside/k
/dev/null
/dev/zero
/etc/passwd
fifo
loop
to-fifo
../outside/fifo
to-dir/k\0.txt
sub\0/../../outside/k
..\\outside\\k
....//outside/k
\u2025/outside/k
../outside/{long}
to-dir/{long}
http://127.0.0.1/k
https:../outside/k
""".strip().split("\n")

FOLDERS = """
..
../outside
{base}/outside
to-dir
to-up
sub/to-far
chain
~
/
/proc/self/cwd
sub/../..
file://{base}/outside
to-dir/../outside
../ws-secret
../ws/../outside
""".strip().split("\n")

ALLOWED = """
git status
git diff
git log
git
ls
echo
find
cat
grep
rg
head
tail
sort
uniq
sed
awk
tar
xargs
env
printf
test
diff
date
file
tree
cd
cp
tee
python3
perl
node
make
npm
pytest
curl
poetry
sh
bash
which
xxd
""".strip().split("\n")
"""What the rules of the tests allow, each by its first words."""

LINES = r"""
git status && touch X
git status; touch X
git status & touch X
git status || touch X
git status | tee ../outside/X
git status\ntouch X
git status\r\ntouch X
git statusfoo; touch X
git status > X
git status >> ../outside/k
git status 2> X
git status &> X
git status >& X
git status >| X
git status $(touch X)
git status `touch X`
git status "$(touch X)"
git status "`touch X`"
git status ${Y:=$(touch X)}
git status <(touch X)
git status $((a[$(touch X)]))
git status {a,b} && touch X
echo $(touch X)
echo `touch X`
echo "$(touch X)"
echo a > X
echo a >X
echo a>X
echo a 1>X
echo a > '../outside/X'
echo a | tee ../outside/k
echo a | sh -c 'touch X'
echo 'touch X' | sh
echo 'touch X' | bash
echo 'touch X' | bash -s
echo 'touch X' | python3
echo X | xargs touch
echo \$(touch X) "$(touch X)"
echo a;touch X
echo a &&touch X
echo a\
touch X
echo a # $(touch X)\ntouch X
echo ~; touch X
echo !; touch X
ls | sh -c 'touch X'
ls & touch X
ls && touch X
ls;touch X
ls -la; touch X
ls "$(touch X)"
ls $'\x24(touch X)' ; touch X
ls > ../outside/X
ls ../outside
ls to-dir
ls | xargs -I{} touch X
ls || touch X
(touch X)
{ touch X; }
! touch X
if true; then touch X; fi
for x in a; do touch X; done
while touch X; do break; done
case a in a) touch X;; esac
f() { touch X; }; f
function f { touch X; }; f
coproc touch X
time touch X
FOO=1 git status; touch X
FOO=1 touch X
PATH=. git status
GIT_EXTERNAL_DIFF='touch X' git diff
LD_PRELOAD=./evil.so ls
GIT_PAGER='touch X' git log
env touch X
env -S 'touch X'
env FOO=1 touch X
/usr/bin/env touch X
command touch X
builtin eval 'touch X'
eval 'touch X'
exec touch X
nohup touch X
nice touch X
timeout 5 touch X
sudo touch X
xargs touch X
xargs -a a.txt touch
find . -exec touch X ;
find . -exec touch X \;
find . -exec touch X ';'
find . -exec touch X '{}' +
find . -execdir touch X ';'
find . -ok touch X ';'
find . -okdir touch X ';'
find . -name a.txt -delete
find . -fprint X
find . -fprint0 X
find . -fprintf X '%p'
find . -fls X
find . -maxdepth 0 -exec sh -c 'touch X' ';'
find ../outside -name k
find to-dir/ -name k
find -L . -name k -exec touch X ';'
find . -files0-from a.txt -fprint X
git -c core.pager='touch X' diff
git -c core.fsmonitor='touch X' status
git -c alias.x='!touch X' x
git -c core.sshCommand='touch X' fetch
git -c diff.external='touch X' diff
git --config-env=core.fsmonitor=EVIL status
git --exec-path=. status
git -C ../outside status
git --git-dir=../outside/.git status
git --work-tree=../outside status
git -p log
git --paginate log
git diff --output=X
git diff --output X
git diff --outpu=X
git diff --outp X
git diff --ext-diff
git diff --textconv
git diff --no-index a.txt ../outside/k
git diff -Oorder --output=X
git log --output=X
git log -p --output=X
git log --output=../outside/X
git log --format='%G?'
git log --show-signature
git show --output=X
git difftool -y -x 'touch X'
git difftool --extcmd='touch X'
git mergetool --tool=x
git grep -O'touch X' a
git grep --open-files-in-pager='touch X' a
git bisect run touch X
git submodule foreach 'touch X'
git rebase -x 'touch X' HEAD
git rebase --exec 'touch X' HEAD
git rebase --exe='touch X' HEAD
git rebase --ex='touch X' HEAD
git filter-branch --tree-filter 'touch X'
git clone 'ext::sh -c touch% X'
git fetch 'ext::sh -c touch% X'
git ls-remote 'ext::sh -c touch% X'
git ls-remote --upload-pack='touch X' .
git ls-remote --upload-p='touch X' .
git fetch --upload-pack='touch X' .
git push --receive-pack='touch X' .
git push --exec='touch X' .
git pull --upload-pack 'touch X' .
git clone -u 'touch X' . c
git clone --upload-pack='touch X' . c
git clone --template=evil . c
git clone -c core.fsmonitor='touch X' . c
git clone . ../outside/c
git init ../outside/c
git init --template=evil
git worktree add ../outside/w
git config core.fsmonitor 'touch X'
git config alias.status '!touch X'
git config --global alias.x '!touch X'
git archive --output=X HEAD
git archive -o X HEAD
git bundle create X HEAD
git format-patch -o ../outside HEAD
git apply --directory=../outside a.patch
git hook run pre-commit
git help -w status
git instaweb
git evil
git statuss; touch X
cat a.txt > X
cat a.txt | tee X ../outside/X
cat ../outside/k
cat to-file
cat to-dir/k
cat {base}/outside/k
cat sub/to-far/k
cat .env
cat ./.env
cat sub/../.env
cat to-env
cat '.env'
cat .e*
cat .en?
cat < .env
cat .en""v .e'n'v
head -c 100 .env
tail -n 1 ../outside/k
grep -r SECRET ../outside
grep SECRET .env
grep -f ../outside/k a.txt
grep --file=../outside/k a.txt
grep -f../outside/k a.txt
rg --pre 'touch X' a
rg --pre=./evil a
rg --hostname-bin ./evil a
rg -z a --pre ./evil
sort -o X a.txt
sort -oX a.txt
sort --output=X a.txt
sort --outp=X a.txt
sort -no X a.txt
sort --compress-program=./evil a.txt
sort -T ../outside a.txt
sort -T../outside a.txt
sort --files0-from=../outside/k
uniq a.txt X
uniq a.txt ../outside/X
sed -i s/a/b/ a.txt
sed -i.bak s/a/b/ a.txt
sed -n 'w X' a.txt
sed -n '1w X' a.txt
sed 's/a/b/w X' a.txt
sed 's/a/touch X/e' a.txt
sed '1e touch X' a.txt
sed e a.txt
sed -n '/a/w X' a.txt
sed --in-place s/a/b/ a.txt
sed -f evil.sed a.txt
sed -e '1e touch X' a.txt
sed -ne 'w X' a.txt
sed -s -n '$!N;w X' a.txt
sed 'r ../outside/k' a.txt
awk 'BEGIN { system("touch X") }'
awk 'BEGIN { print > "X" }'
awk 'BEGIN { print | "touch X" }'
awk 'BEGIN { "touch X" | getline }'
awk -f evil.awk
tar cf ../outside/X a.txt
tar -xf a.tar --to-command='touch X'
tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec='touch X' a.txt
tar --use-compress-program='touch X' -cf /dev/null a.txt
tar -I 'touch X' -cf /dev/null a.txt
tar cIf 'touch X' /dev/null a.txt
tar -xf a.tar -C ../outside
tar xPf a.tar
tar --rsh-command='touch X' -cf host:x a.txt
tar -cf host:x a.txt --rsh-c=./evil
tar --new-volume-script='touch X' -cf /dev/null a.txt
printf -v PATH . && ls
printf -v 'a[$(touch X)]' x
printf '%s' "$(touch X)"
printf a > X
test -v 'a[$(touch X)]'
test a -ef b; touch X
diff a.txt ../outside/k
diff --to-file=../outside a.txt
date -s 2000-01-01
date -f ../outside/k
date --file=../outside/k
file -f ../outside/k
file -C -m evil.magic
tree -o X
tree ../outside
tree -R -H . -o X
cd ../outside && touch X
cd .. && ls
cd to-dir && ls
cd - && ls
cd && ls
cd sub && cat to-far/k
cd sub; cat to-far/k
cd sub || cat to-far/k
cd nowhere; cd sub && cat to-far/k
cd "$OLDPWD" && touch X
cd sub && cd .. && cd .. && touch X
ls && cd .. && tee X
cp a.txt ../outside/X
cp a.txt to-dir/X
cp a.txt {base}/outside/X
cp -t ../outside a.txt
cp --target-directory=../outside a.txt
cp -t../outside a.txt
cp ../outside/k b.txt
cp -r to-dir/. here
tee ../outside/X
tee to-file
python3 -c 'open("X","w")'
python3 -Bc 'open("X","w")'
python3 evil.py
python3 - < evil.py
python3 -
python3 -m evil
python3 -i evil.py
python3 -mevil
perl -e 'open F, ">X"'
perl -ne 'open F, ">X"' a.txt
perl evil.pl
node -e 'require("fs").writeFileSync("X","")'
node --eval 'require("fs").writeFileSync("X","")'
node -p 'require("fs").writeFileSync("X","")'
make -f evil.mk
make --eval='$(shell touch X)'
make SHELL='touch X'
make CC='touch X'
make -C ../outside
make -fevil.mk
make -sf evil.mk
npm run evil
npm exec -- touch X
npm x -- touch X
npm --script-shell=./evil test
npm --prefix ../outside test
poetry run touch X
pytest --rootdir=../outside ../outside
curl -o X http://127.0.0.1:9/
curl -sSo X http://127.0.0.1:9/
curl --output X http://127.0.0.1:9/
curl -K ../outside/k
curl -O http://127.0.0.1:9/X
curl --outp=X http://127.0.0.1:9/
sh -c 'touch X'
sh evil.sh
bash -c 'touch X'
bash evil.sh
sh -s < evil.sh
. ./evil.sh
source ./evil.sh
./evil.sh
./git status
sub/git status
which ls; touch X
xxd -r a.txt X
ls\ttouch X\ntouch X
ls\vtouch X;touch X
git\u00a0status;touch X
ls \u2028touch X\ntouch X
ls \x00; touch X
\ls; touch X
'ls' && 'touch' X
l\s | \t\o\u\c\h X
""".strip().split("\n")
"""Written as they are, but for \\n, \\r, \\t, \\v, \\u…, \\x00 and {base}."""

PLAIN = """
git status
git status -s
git status --short --branch
git diff
git diff --stat
git log --oneline -5
git log -n 3 --format='%h %s'
ls
ls -la
ls -la sub
ls; ls
ls && git status
ls | sort | uniq -c | head -3
echo hello
echo 'it is $HOME; touch X'
cat a.txt
cat a.txt | grep -n a
grep -rn a .
find . -name '*.txt' -type f
sed -n 1,3p a.txt
cd sub && ls -la
cd sub && cat b.txt | head -1
sort a.txt
""".strip().split("\n")
"""What the same rules are there for: none of these asks."""
