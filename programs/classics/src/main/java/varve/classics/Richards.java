package varve.classics;

/**
 * The scheduler of a small operating system at work (Martin Richards' benchmark): an idle task, a worker, two handlers and two devices that
 * pass packets. How often packets were queued and tasks held is known, and checked.
 */
final class Richards {
    private static final int QUEUED = 23246;
    private static final int HELD = 9297;

    private Richards() {
    }

    static void run(int rounds) {
        for (int round = 0; round < rounds; round++) {
            Scheduler scheduler = new Scheduler();
            Task.Idle idle = new Task.Idle(scheduler, 10_000);
            Task.Worker worker = new Task.Worker(scheduler);
            worker.receive(new Packet(null, Packet.Kind.WORK), new Packet(null, Packet.Kind.WORK));
            Task.Handler handlerA = new Task.Handler(scheduler, 2);
            Task.Handler handlerB = new Task.Handler(scheduler, 3);
            Task.Device deviceA = new Task.Device(scheduler, 4);
            Task.Device deviceB = new Task.Device(scheduler, 5);
            handlerA.serve(deviceA);
            handlerB.serve(deviceB);
            worker.workFor(handlerA, handlerB);
            idle.release(deviceA, deviceB);
            for (int i = 0; i < 3; i++) {
                handlerA.receive(new Packet(deviceA, Packet.Kind.DEVICE));
                handlerB.receive(new Packet(deviceB, Packet.Kind.DEVICE));
            }
            scheduler.run();
            if (scheduler.queued() != QUEUED || scheduler.held() != HELD) {
                throw new IllegalStateException("queued " + scheduler.queued() + " packets, held " + scheduler.held()
                        + " times; it should be " + QUEUED + " and " + HELD);
            }
        }
        System.out.println("richards: " + rounds + " rounds, each queued " + QUEUED + " packets and held " + HELD + " times");
    }
}
