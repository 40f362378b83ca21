package varve.evolve;

import varve.Varve;

/** The shop of {@code evolve-before} in its next version. */
public final class Main {
    private Main() {
    }

    public static void main(String[] arguments) {
        if (arguments.length > 0 && arguments[0].equals("notes")) {
            Notes.show();
            return;
        }
        // Not durable, and with fields whose names durable classes have too.
        Counter counter = new Counter();
        counter.count(arguments.length);
        Shop shop = Varve.root("shop", Main::open);
        Ware ware = shop.wares.get(0);
        System.out.println(ware.name + " " + ware.small + " " + ware.medium + " " + ware.letter + " " + ware.large + " " + ware.real + " "
                + ware.price + " " + ware.discount + " " + ware.next + " " + ((Thing) ware).next);
        System.out.println(shop.visitors + " " + shop.mood + " " + shop.mood.says() + " " + shop.moods);
        System.out.println(shop.keep.greet() + " " + shop.drop.greet());
        System.out.println((shop.kinds[0] == Ware.class) + " " + (shop.kinds[1] == int[].class) + " " + (shop.kinds[2] == Ware[].class) + " "
                + (shop.kinds[3] == Account.class) + " " + ((Class<?>) shop.kinds[3]).getName());
        System.out.println("opened " + ++shop.opened + ", " + counter.version + counter.name);
        System.out.println(shop.best.name + " " + shop.best.born + " " + shop.best.address.street);
    }

    private static Shop open() {
        Shop shop = new Shop();
        shop.wares.add(new Ware("kettle", 1L << 40));
        shop.visitors.add("Grace");
        shop.moods.put(Mood.GLAD, 2);
        shop.moods.put(Mood.CALM, 1);
        shop.moods.put(Mood.PLAIN, 3);
        return shop;
    }
}
