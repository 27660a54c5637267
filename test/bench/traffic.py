"""Clients that talk to a session in a thread of their own and count what was wrong."""
import threading


class Traffic(threading.Thread):
    def __init__(self, place):
        super().__init__(daemon=True)
        self.place, self.session = place, place.session()
        self.stopping, self.wrong, self.first_fault = threading.Event(), 0, None

    def run(self):
        try:
            self.talk()
        except Exception as error:
            self.fault(repr(error))

    def fault(self, text):
        self.wrong += 1
        self.first_fault = self.first_fault or text

    def end(self):
        """Stops it; the number of faults."""
        self.stopping.set()
        self.join()
        return self.wrong

    def note(self):
        return f"{self.done()}{': ' + self.first_fault if self.first_fault else ''}"


class Runs(Traffic):
    """Commands whose output is known, one after the other."""
    count = 0

    def talk(self):
        while not self.stopping.is_set():
            first = self.count * 300
            output = self.place.run(self.session, f"seq {first} {first + 299}")["output"]
            if output != "".join(f"{n}\n" for n in range(first, first + 300)):
                self.fault(f"seq {first}: {output[:100]!r}")
            self.count += 1

    def done(self):
        return f"{self.count} runs"


class Lines(Traffic):
    """A program that prints numbered lines, read as they come."""
    text = ""

    def talk(self):
        self.read(input="i=0; while :; do echo $((i++)); sleep 0.002; done\n")
        while not self.stopping.is_set():
            self.read()
        while self.read(input="\x03").strip("^C\n\r"):
            pass  # an interrupt that came between two sleeps may have been lost on one that had ended
        numbers = self.text.replace("^C", "").split()
        if numbers != [str(n) for n in range(len(numbers))]:
            self.fault(next(f"line {i} is {n}" for i, n in enumerate(numbers) if n != str(i)))

    def read(self, wait=1, **more):
        new = self.place.call("bash_session", session_name=self.session, wait_for_output=wait, idle_timeout=0.01, **more)
        self.text += new
        return new

    def done(self):
        return f"{self.text.count(chr(10))} lines"
