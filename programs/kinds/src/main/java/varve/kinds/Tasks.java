package varve.kinds;

/** A scheduler: tasks with states that are objects, whose work is a function that is called through an interface. */
final class Tasks {
    private interface Work {
        Task work(Parcel parcel, Object own);
    }

    private static class State {
        boolean waiting;
        boolean held;
        boolean parcels;

        boolean isHeldOrWaits() {
            return held || !parcels && waiting;
        }

        boolean isReady() {
            return parcels && waiting && !held;
        }

        void run() {
            waiting = false;
            parcels = false;
        }

        void runWithMore() {
            waiting = false;
            parcels = true;
        }
    }

    private static final class Task extends State {
        final int number;
        final int rank;
        final Task next;
        final Work work;
        final Object own;
        Parcel input;

        Task(int number, int rank, Parcel input, State state, Work work, Object own, Task next) {
            this.number = number;
            this.rank = rank;
            this.input = input;
            this.work = work;
            this.own = own;
            this.next = next;
            waiting = state.waiting;
            held = state.held;
            parcels = state.parcels;
        }

        Task take(Parcel parcel, Task from) {
            if (input == null) {
                input = parcel;
                parcels = true;
                if (rank > from.rank) {
                    return this;
                }
            } else {
                input = append(parcel, input);
            }
            return from;
        }

        Task run(Tasks tasks) {
            Parcel parcel = null;
            if (isReady()) {
                parcel = input;
                input = parcel.next;
                if (input == null) {
                    run();
                } else {
                    runWithMore();
                }
            }
            return work.work(parcel, own);
        }
    }

    private static final class Parcel {
        Parcel next;
        int from;
        final int kind;
        int datum;
        final int[] data = new int[4];

        Parcel(Parcel next, int from, int kind) {
            this.next = next;
            this.from = from;
            this.kind = kind;
        }
    }

    private static final class Device {
        Parcel waiting;
    }

    private static final class Handler {
        Parcel work;
        Parcel devices;
    }

    private static final class Idle {
        int control = 1;
        int count = 10_000;
    }

    private static final class Worker {
        int goal = 1;
        int letter;
    }

    private static Parcel append(Parcel parcel, Parcel queue) {
        parcel.next = null;
        if (queue == null) {
            return parcel;
        }
        Parcel last = queue;
        while (last.next != null) {
            last = last.next;
        }
        last.next = parcel;
        return queue;
    }

    private final Task[] tasks = new Task[6];
    private Task list;
    private Task current;
    private int sent;
    private int holds;

    static long run() {
        Tasks tasks = new Tasks();
        tasks.addIdle();
        tasks.addWorker();
        tasks.addHandler(2, 4);
        tasks.addHandler(3, 5);
        tasks.addDevice(4);
        tasks.addDevice(5);
        tasks.schedule();
        return tasks.sent * 100_000L + tasks.holds;
    }

    private void add(int number, int rank, Parcel input, State state, Work work, Object own) {
        Task task = new Task(number, rank, input, state, work, own, list);
        list = task;
        tasks[number] = task;
    }

    private static State waitingState(boolean parcels) {
        State state = new State();
        state.waiting = true;
        state.parcels = parcels;
        return state;
    }

    private void addIdle() {
        add(0, 0, null, new State(), (parcel, own) -> {
            Idle idle = (Idle) own;
            idle.count--;
            if (idle.count == 0) {
                return hold();
            }
            if ((idle.control & 1) == 0) {
                idle.control /= 2;
                return release(4);
            }
            idle.control = idle.control / 2 ^ 53256;
            return release(5);
        }, new Idle());
    }

    private void addWorker() {
        Parcel input = new Parcel(new Parcel(null, 1, 1), 1, 1);
        add(1, 1000, input, waitingState(true), (parcel, own) -> {
            Worker worker = (Worker) own;
            if (parcel == null) {
                return rest();
            }
            worker.goal = worker.goal == 2 ? 3 : 2;
            parcel.from = worker.goal;
            parcel.datum = 0;
            for (int i = 0; i < 4; i++) {
                worker.letter = worker.letter >= 26 ? 1 : worker.letter + 1;
                parcel.data[i] = 64 + worker.letter;
            }
            return send(parcel);
        }, new Worker());
    }

    private void addHandler(int number, int device) {
        Parcel input = new Parcel(new Parcel(new Parcel(null, device, 0), device, 0), device, 0);
        add(number, number * 1000, input, waitingState(true), (parcel, own) -> {
            Handler handler = (Handler) own;
            if (parcel != null) {
                if (parcel.kind == 1) {
                    handler.work = append(parcel, handler.work);
                } else {
                    handler.devices = append(parcel, handler.devices);
                }
            }
            Parcel work = handler.work;
            if (work != null) {
                int count = work.datum;
                if (count >= 4) {
                    handler.work = work.next;
                    return send(work);
                }
                Parcel free = handler.devices;
                if (free != null) {
                    handler.devices = free.next;
                    free.datum = work.data[count];
                    work.datum = count + 1;
                    return send(free);
                }
            }
            return rest();
        }, new Handler());
    }

    private void addDevice(int number) {
        add(number, number * 1000, null, waitingState(false), (parcel, own) -> {
            Device device = (Device) own;
            if (parcel == null) {
                Parcel done = device.waiting;
                if (done == null) {
                    return rest();
                }
                device.waiting = null;
                return send(done);
            }
            device.waiting = parcel;
            return hold();
        }, new Device());
    }

    private Task hold() {
        holds++;
        current.held = true;
        return current.next;
    }

    private Task rest() {
        current.waiting = true;
        return current;
    }

    private Task release(int number) {
        Task task = tasks[number];
        task.held = false;
        return task.rank > current.rank ? task : current;
    }

    private Task send(Parcel parcel) {
        Task to = tasks[parcel.from];
        sent++;
        parcel.next = null;
        parcel.from = current.number;
        return to.take(parcel, current);
    }

    private void schedule() {
        current = list;
        while (current != null) {
            if (current.isHeldOrWaits()) {
                current = current.next;
            } else {
                current = current.run(this);
            }
        }
    }
}
