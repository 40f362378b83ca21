package varve.classics;

/** What tasks pass to each other. */
final class Packet {
    enum Kind {
        DEVICE, WORK
    }

    static final int SIZE = 4;

    final Kind kind;
    final int[] data = new int[SIZE];
    /** The task that is to get it, or that has sent it. */
    Task task;
    /** The position of the character that is next for the device. */
    int position;
    Packet next;

    Packet(Task task, Kind kind) {
        this.task = task;
        this.kind = kind;
    }

    /** Behind the packets of a queue; the queue's first. */
    Packet appendTo(Packet queue) {
        next = null;
        if (queue == null) {
            return this;
        }
        Packet last = queue;
        while (last.next != null) {
            last = last.next;
        }
        last.next = this;
        return queue;
    }
}
