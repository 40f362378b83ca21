package varve.kept;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.ListIterator;
import java.util.PriorityQueue;
import java.util.Queue;
import java.util.Stack;
import java.util.Vector;

/** Lists, queues and what is in them. */
final class Lists {
    private Lists() {
    }

    static void add(Suite suite) {
        suite.<ArrayList<Object>>change("ArrayList", () -> new ArrayList<>(List.of("a", 1, 'c', 2.5)), (list, s) -> {
            s.say(list, list.size(), list.indexOf("a"), list.contains(2.5));
            list.add("step" + s.n);
            list.add(0, s.n);
            list.set(1, null);
            list.remove(Integer.valueOf(0));
        });
        suite.<ArrayList<Integer>>change("ArrayList grows and shrinks", ArrayList::new, (list, s) -> {
            long sum = 0;
            for (int each : list) {
                sum += each;
            }
            s.say(list.size(), sum);
            for (int i = 0; i < 1000; i++) {
                list.add(i * (s.n + 1));
            }
            list.subList(100, 500).clear();
            if (s.n == 2) {
                list.clear();
                list.trimToSize();
            }
        });
        suite.<ArrayList<String>>change("ArrayList sorted", () -> new ArrayList<>(List.of("pear", "fig", "apple", "date")), (list, s) -> {
            s.say(list);
            switch (s.n) {
                case 0 -> Collections.sort(list);
                case 1 -> list.sort(new ByLength());
                default -> Collections.reverse(list);
            }
        });
        suite.<LinkedList<Object>>change("LinkedList", () -> new LinkedList<>(Arrays.asList("x", null, 3L)), (list, s) -> {
            s.say(list, list.getFirst(), list.peekLast(), list.indexOf(null));
            list.addFirst(s.n);
            list.addLast("last" + s.n);
            list.removeFirstOccurrence(null);
            ListIterator<Object> at = list.listIterator(2);
            at.add("between");
            at.previous();
            at.set("BETWEEN" + s.n);
        });
        suite.<ArrayDeque<String>>change("ArrayDeque", ArrayDeque::new, (deque, s) -> {
            s.say(deque, deque.peekFirst(), deque.peekLast());
            for (int i = 0; i < 20; i++) {
                deque.offerFirst("f" + i);
                deque.offerLast("l" + i);
            }
            for (int i = 0; i < 17; i++) {
                deque.pollFirst();
                deque.pollLast();
            }
        });
        suite.<PriorityQueue<Integer>>change("PriorityQueue", () -> new PriorityQueue<>(List.of(5, 1, 4)), (queue, s) -> {
            s.say(queue.size(), queue.peek(), queue.poll());
            for (int i = 0; i < 6; i++) {
                queue.add((i * 37 + s.n * 11) % 50);
            }
        });
        suite.<PriorityQueue<String>>change("PriorityQueue with a comparator", () -> new PriorityQueue<>(4, new ByLength()), (queue, s) -> {
            s.say(queue.size(), queue.peek(), queue.comparator() instanceof ByLength);
            for (String each : new String[] {"ccc", "a", "bb", "dddd" + s.n}) {
                queue.add(each);
            }
            s.say(queue.poll(), queue.poll(), queue.poll());
        });
        suite.<Vector<String>>change("Vector", () -> new Vector<>(List.of("v")), (vector, s) -> {
            s.say(vector, vector.elementAt(0), vector.capacity() > 0);
            vector.addElement("e" + s.n);
            vector.insertElementAt("i" + s.n, 0);
            if (s.n == 2) {
                vector.removeElement("v");
            }
        });
        suite.<Stack<Integer>>change("Stack", Stack::new, (stack, s) -> {
            s.say(stack, stack.isEmpty() ? "empty" : stack.peek());
            for (int i = 0; i < 3; i++) {
                stack.push(s.n * 10 + i);
            }
            s.say(stack.pop(), stack.search(s.n * 10));
        });
        suite.<List<String>>change("Arrays.asList", () -> Arrays.asList("a", "b", "c"), (list, s) -> {
            s.say(list);
            list.set(s.n % 3, "s" + s.n);
            try {
                list.add("no");
            } catch (UnsupportedOperationException e) {
                s.say("fixed");
            }
        });
        suite.<Object[]>change("subList", () -> {
            List<Integer> all = new ArrayList<>(List.of(1, 2, 3, 4, 5, 6));
            return new Object[] {all, all.subList(1, 4)};
        }, (both, s) -> {
            @SuppressWarnings("unchecked")
            List<Integer> part = (List<Integer>) both[1];
            s.say(both[0], part, part.size());
            part.add(10 + s.n);
            part.remove(0);
        });
        suite.<Object[]>change("Iterator of an ArrayList", () -> {
            List<Integer> all = new ArrayList<>(List.of(1, 2, 3, 4, 5, 6));
            return new Object[] {all, all.iterator()};
        }, (both, s) -> {
            Iterator<?> at = (Iterator<?>) both[1];
            s.say(at.hasNext(), at.next());
            if (s.n == 1) {
                at.remove();
            }
            s.say(both[0]);
        });
        suite.<Object[]>change("ListIterator of a LinkedList", () -> {
            List<Integer> all = new LinkedList<>(List.of(1, 2, 3, 4, 5, 6));
            return new Object[] {all, all.listIterator()};
        }, (both, s) -> {
            @SuppressWarnings("unchecked")
            ListIterator<Integer> at = (ListIterator<Integer>) both[1];
            s.say(at.next());
            at.set(-s.n);
            at.add(100 + s.n);
            s.say(both[0]);
        });
        suite.<Object[]>change("Iterator that notices a change", () -> {
            List<Integer> all = new ArrayList<>(List.of(1, 2, 3));
            return new Object[] {all, all.iterator()};
        }, (both, s) -> {
            @SuppressWarnings("unchecked")
            List<Integer> all = (List<Integer>) both[0];
            try {
                s.say(((Iterator<?>) both[1]).next());
            } catch (java.util.ConcurrentModificationException e) {
                s.say("changed");
            }
            if (s.n == 1) {
                all.add(4);
            }
        });
        suite.<Deque<Queue<Integer>>>change("Queues in a Deque", LinkedList::new, (deque, s) -> {
            s.say(deque);
            deque.push(new ArrayDeque<>(List.of(s.n)));
            deque.peekLast().add(s.n * 2);
        });
        suite.<List<Object>>change("List that contains itself", () -> {
            List<Object> list = new ArrayList<>();
            list.add(list);
            return list;
        }, (list, s) -> {
            s.say(list, list.get(0) == list);
            list.add(s.n);
        });
    }
}
