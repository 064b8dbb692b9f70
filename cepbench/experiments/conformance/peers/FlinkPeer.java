import com.sun.management.OperatingSystemMXBean;
import java.io.Serializable;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.eventtime.WatermarkGenerator;
import org.apache.flink.api.common.eventtime.WatermarkOutput;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.cep.PatternStream;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.IterativeCondition.Context;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.util.Collector;

/**
 * Runs cases on Flink: those named in the file cases of a folder, each with N.csv and either N.sql (the
 * declaration of its table, a line of dashes, a query) or a class CaseN. Prints "case N" for each that ran and
 * "N match" for each match, or "error N" and why; with a second argument also "seconds S" so many times.
 */
public class FlinkPeer {
  static final OperatingSystemMXBean CLOCK =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  /** How often cases run again and their time of CPU is printed. */
  static int times = 0;

  /** Cases of one job: starting one takes seconds. */
  static final int TOGETHER = 40;

  public static class Event implements Serializable {
    public int id;
    public String type;
    public long ts;
    public HashMap<String, String> values = new HashMap<>();

    public double number(String name) {
      String value = values.get(name);
      return value.isEmpty() ? Double.NaN : Double.parseDouble(value);
    }

    public String text(String name) {
      String value = values.get(name);
      return value.isEmpty() ? null : value;
    }

    public String key(String name) {
      return values.get(name);
    }
  }

  /** A watermark every hundred events: by default there is one every 200 ms, until which all events wait. */
  static class EveryHundred implements WatermarkGenerator<Event> {
    int seen = 0;
    long latest = Long.MIN_VALUE + 1;

    @Override
    public void onEvent(Event event, long time, WatermarkOutput out) {
      latest = Math.max(latest, time);
      if (++seen % 100 == 0) out.emitWatermark(new Watermark(latest - 1));
    }

    @Override
    public void onPeriodicEmit(WatermarkOutput out) {}
  }

  /** The events of each case: a source that reads them here does not send them through the job's graph. */
  static final Map<String, List<Event>> STREAMS = new HashMap<>();

  public interface Program {
    PatternStream<Event> over(DataStream<Event> events);
  }

  public interface Test extends Serializable {
    boolean test(Event e, Context<Event> c) throws Exception;
  }

  public interface OfEvent {
    boolean test(Event e);
  }

  public static SimpleCondition<Event> type(String type) {
    return SimpleCondition.of(e -> e.type.equals(type));
  }

  public static IterativeCondition<Event> when(Test test) {
    return new IterativeCondition<>() {
      @Override
      public boolean filter(Event e, Context<Event> c) throws Exception {
        try {
          return test.test(e, c);
        } catch (NoSuchElementException nothing) {
          return false; // a condition of NOT is tested too where no event is bound yet
        }
      }
    };
  }

  public static Event first(Context<Event> c, String name) throws Exception {
    return c.getEventsForPattern(name).iterator().next();
  }

  public static Event last(Context<Event> c, String name) throws Exception {
    Event found = null;
    for (Event event : c.getEventsForPattern(name)) found = event;
    if (found == null) throw new NoSuchElementException();
    return found;
  }

  public static boolean none(Context<Event> c, String name) throws Exception {
    return !c.getEventsForPattern(name).iterator().hasNext();
  }

  public static boolean all(Context<Event> c, String name, OfEvent test) throws Exception {
    for (Event event : c.getEventsForPattern(name)) if (!test.test(event)) return false;
    return true;
  }

  public static boolean same(String one, String other) {
    return one != null && one.equals(other);
  }

  public static boolean differ(String one, String other) {
    return one != null && other != null && !one.equals(other);
  }

  static List<Event> read(Path file) throws Exception {
    List<String> lines = Files.readAllLines(file);
    String[] names = lines.get(0).split(",");
    // The first event is left out again: a source of no events is an error.
    List<Event> events = new ArrayList<>(List.of(new Event()));
    for (String line : lines.subList(1, lines.size())) {
      String[] cells = line.split(",", -1);
      Event event = new Event();
      for (int i = 0; i < names.length; i++) event.values.put(names[i], cells[i]);
      event.id = Integer.parseInt(event.text("id"));
      event.type = event.text("type");
      event.ts = Long.parseLong(event.text("ts"));
      events.add(event);
    }
    return events;
  }

  /** The matches of some programs, found by one job: a line each, the case before it. */
  static List<String> cep(Path folder, List<String> numbers) throws Exception {
    StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
    DataStream<String> all = null;
    for (String number : numbers) {
      if (!STREAMS.containsKey(number))
        STREAMS.put(number, read(folder.resolve(number + ".csv")));
      DataStream<Event> events =
          env.fromSequence(0, STREAMS.get(number).size() - 1)
              .map(at -> STREAMS.get(number).get(at.intValue()))
              .returns(TypeInformation.of(Event.class))
              .filter(event -> event.type != null)
              .assignTimestampsAndWatermarks(
                  WatermarkStrategy.<Event>forGenerator(context -> new EveryHundred())
                      .withTimestampAssigner((event, before) -> event.ts * 1000));
      Program program =
          (Program) Class.forName("Case" + number).getDeclaredConstructor().newInstance();
      DataStream<String> matches =
          program.over(events).process(
              new PatternProcessFunction<Event, String>() {
                @Override
                public void processMatch(
                    Map<String, List<Event>> match, Context context, Collector<String> out) {
                  out.collect(
                      match.entrySet().stream()
                          .map(bound -> bound.getKey() + "=" + bound.getValue().stream()
                              .map(event -> "" + event.id).collect(Collectors.joining(",")))
                          .collect(Collectors.joining(" ", number + " ", "")));
                }
              });
      all = all == null ? matches : all.union(matches);
    }
    List<String> found = new ArrayList<>();
    try (var matches = all.executeAndCollect()) {
      matches.forEachRemaining(found::add);
    }
    return found;
  }

  /** The same of queries, whose rows are a text each, by one query. */
  static List<String> sql(Path folder, List<String> numbers) throws Exception {
    TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.inBatchMode());
    tables.getConfig().set("parallelism.default", "1");
    tables.getConfig().set("table.local-time-zone", "UTC");
    List<String> queries = new ArrayList<>();
    for (String number : numbers) {
      String[] statements = Files.readString(folder.resolve(number + ".sql")).split("\n----\n");
      tables.executeSql(statements[0]);
      queries.add(statements[1]);
    }
    List<String> found = new ArrayList<>();
    try (var rows = tables.executeSql(String.join("\nUNION ALL\n", queries)).collect()) {
      rows.forEachRemaining(row -> found.add(row.getField(0).toString()));
    }
    return found;
  }

  /** Runs cases together; if that fails, each half of them, so that an error is that of one case. */
  static void run(Path folder, List<String> numbers, boolean isSql) {
    if (numbers.isEmpty()) return;
    try {
      List<String> found = isSql ? sql(folder, numbers) : cep(folder, numbers);
      numbers.forEach(number -> System.out.println("case " + number));
      found.forEach(System.out::println);
      for (int i = 0; i < times; i++) {
        long before = CLOCK.getProcessCpuTime();
        if (isSql) sql(folder, numbers);
        else cep(folder, numbers);
        System.out.println("seconds " + (CLOCK.getProcessCpuTime() - before) / 1e9);
      }
    } catch (Throwable error) {
      if (numbers.size() > 1) {
        run(folder, numbers.subList(0, numbers.size() / 2), isSql);
        run(folder, numbers.subList(numbers.size() / 2, numbers.size()), isSql);
        return;
      }
      Throwable cause = error;
      while (cause.getCause() != null) cause = cause.getCause();
      System.out.println("error " + numbers.get(0) + " " + cause.toString().replace("\n", " "));
    }
    System.out.flush();
  }

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    if (arguments.length > 1) times = Integer.parseInt(arguments[1]);
    List<String> all = Files.readAllLines(folder.resolve("cases"));
    for (boolean isSql : new boolean[] {false, true}) {
      List<String> its =
          all.stream().filter(n -> Files.exists(folder.resolve(n + ".sql")) == isSql).toList();
      for (int i = 0; i < its.size(); i += TOGETHER)
        run(folder, its.subList(i, Math.min(its.size(), i + TOGETHER)), isSql);
    }
    System.exit(0);
  }
}
