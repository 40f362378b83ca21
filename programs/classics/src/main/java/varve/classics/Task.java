package varve.classics;

/** A task: its state, and in its subclasses what it does with its turn. */
abstract class Task {
    final Scheduler scheduler;
    /** Also its priority. */
    final int number;
    boolean held;
    boolean waiting = true;
    private Packet queue;

    Task(Scheduler scheduler, int number) {
        this.scheduler = scheduler;
        this.number = number;
        scheduler.add(this);
    }

    /** What to do with a packet, or without one; the task that goes on. */
    abstract Task act(Packet packet);

    boolean cannotRun() {
        return held || waiting && queue == null;
    }

    /** Runs with the first waiting packet if it slept, else without. */
    Task takeTurn() {
        Packet packet = null;
        if (waiting) {
            packet = queue;
            queue = packet.next;
            waiting = false;
        }
        return act(packet);
    }

    /** Takes a packet; whether it is the first in the queue. */
    boolean enqueue(Packet packet) {
        boolean first = queue == null;
        queue = packet.appendTo(queue);
        return first;
    }

    void receive(Packet... packets) {
        for (Packet packet : packets) {
            enqueue(packet);
        }
    }

    /** Releases the devices in an order that looks like chance, until its count is down. */
    static final class Idle extends Task {
        private static final int FEEDBACK = 0xd008;

        private int register = 1;
        private int count;
        private Task first;
        private Task second;

        Idle(Scheduler scheduler, int count) {
            super(scheduler, 0);
            this.count = count;
            waiting = false;
        }

        void release(Task first, Task second) {
            this.first = first;
            this.second = second;
        }

        @Override
        Task act(Packet packet) {
            if (--count == 0) {
                return scheduler.hold();
            }
            boolean odd = (register & 1) != 0;
            register = odd ? register >> 1 ^ FEEDBACK : register >> 1;
            return scheduler.release(odd ? second : first);
        }
    }

    /** Fills packets with letters, in turn for each handler. */
    static final class Worker extends Task {
        private static final int LETTERS = 26;

        private Task first;
        private Task second;
        private Task next;
        private int letter;

        Worker(Scheduler scheduler) {
            super(scheduler, 1);
        }

        void workFor(Task first, Task second) {
            this.first = first;
            this.second = second;
            next = first;
        }

        @Override
        Task act(Packet packet) {
            if (packet == null) {
                return scheduler.sleep();
            }
            next = next == first ? second : first;
            packet.task = next;
            packet.position = 0;
            for (int i = 0; i < Packet.SIZE; i++) {
                letter = letter % LETTERS + 1;
                packet.data[i] = 'A' + letter - 1;
            }
            return scheduler.queue(packet);
        }
    }

    /** Feeds a device with the letters of work packets. */
    static final class Handler extends Task {
        private Task device;
        private Packet work;
        private Packet free;

        Handler(Scheduler scheduler, int number) {
            super(scheduler, number);
        }

        void serve(Task device) {
            this.device = device;
        }

        @Override
        Task act(Packet packet) {
            if (packet != null) {
                if (packet.kind == Packet.Kind.WORK) {
                    work = packet.appendTo(work);
                } else {
                    free = packet.appendTo(free);
                }
            }
            if (work != null) {
                Packet current = work;
                if (current.position == Packet.SIZE) {
                    work = current.next;
                    return scheduler.queue(current);
                }
                if (free != null) {
                    Packet letter = free;
                    free = letter.next;
                    letter.task = device;
                    letter.position = current.data[current.position++];
                    return scheduler.queue(letter);
                }
            }
            return scheduler.sleep();
        }
    }

    /** Takes a packet, is busy until it is released, and gives it back. */
    static final class Device extends Task {
        private Packet busyWith;

        Device(Scheduler scheduler, int number) {
            super(scheduler, number);
        }

        @Override
        Task act(Packet packet) {
            if (packet != null) {
                busyWith = packet;
                return scheduler.hold();
            }
            if (busyWith == null) {
                return scheduler.sleep();
            }
            Packet done = busyWith;
            busyWith = null;
            return scheduler.queue(done);
        }
    }
}
