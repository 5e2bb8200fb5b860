# Carries out a statement on Ironic's database while the process of Ironic stands still, and prints the first column of its first row.
# Arguments: the database, the process (0: it does not run), the statement and its values.
#
# Ironic reads before it writes in one transaction. SQLite refuses such a write at once, whatever the timeout, when somebody else has written
# or waits to write meanwhile, and Ironic fails what it was doing. So it is stopped between two transactions: the lock is had at once, or the process goes on.
#
# One at a time: the end of another one would have the process go on that this one waits to see stopped.
import fcntl, os, signal, sqlite3, sys, time

database, process, statement, values = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:]
turn = open(database + ".turn", "w")
fcntl.flock(turn, fcntl.LOCK_EX)
connection = sqlite3.connect(database, timeout=0, isolation_level=None)


def send(to_process):
    if process:
        os.kill(process, to_process)


def wait_until_stopped():
    while process and open(f"/proc/{process}/stat").read().rpartition(")")[2].split()[0] != "T":
        pass


for attempt in range(1000):
    send(signal.SIGSTOP)
    try:
        wait_until_stopped()
        connection.execute("BEGIN EXCLUSIVE")
        rows = connection.execute(statement, values).fetchall()
        connection.execute("COMMIT")
        if rows:
            print(rows[0][0])
        sys.exit()
    except sqlite3.OperationalError as failure:
        if "locked" not in str(failure):
            raise
    finally:
        send(signal.SIGCONT)
    time.sleep(0.005)
sys.exit("the database stayed locked")
