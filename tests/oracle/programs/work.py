# Python: its own I/O, os-level calls, mmap, shutil, and a child.
import mmap, os, shutil, subprocess, tempfile

with open("in.txt") as source, open("py.txt", "w") as sink:
    sink.write(source.read().upper())
shutil.copy("data/a.txt", "copied.txt")
shutil.move("data/b.txt", "moved.txt")
with open("old.txt", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
    view[0:2] = b"PY"
os.makedirs("deep/er")
with tempfile.NamedTemporaryFile(dir="deep/er", delete=False) as temporary:
    temporary.write(b"atomic")
os.replace(temporary.name, "deep/er/result.txt")
with open("child.txt", "w") as sink:
    subprocess.run(["cat", "data/a.txt"], stdout=sink, check=True)
folder = os.open("data", os.O_RDONLY)
with open(os.open("by_dirfd.txt", os.O_WRONLY | os.O_CREAT, dir_fd=folder), "w") as sink:
    sink.write("by dirfd")
