import java.sql.*;
import java.util.Properties;

public class Jdbc {
    public static void main(String[] arguments) throws Exception {
        Properties options = new Properties();
        options.put("user", arguments[1]);
        options.put("password", arguments[2]);
        options.put("options", "-c incrowd.epsilon=0.1");
        Connection connection = DriverManager.getConnection(arguments[0], options);
        DatabaseMetaData about = connection.getMetaData();
        ResultSet[] sets = {
            about.getSchemas(), about.getTables(null, null, "%", new String[] {"TABLE"}),
            about.getColumns(null, null, "births", "%"), about.getPrimaryKeys(null, null, "births"),
            about.getImportedKeys(null, null, "births"), about.getExportedKeys(null, null, "births"),
            about.getIndexInfo(null, null, "births", false, false)
        };
        StringBuilder sizes = new StringBuilder();
        for (ResultSet set : sets) {
            int rows = 0;
            while (set.next()) rows++;
            sizes.append(rows).append(' ');
        }
        System.out.println(sizes.toString().trim());
        PreparedStatement prepared = connection.prepareStatement(
            "SELECT sex, COUNT(*) AS n, MAX(born) AS last FROM births WHERE age > ? AND sex = ? AND born >= ? GROUP BY sex");
        for (int time = 0; time < 6; time++) { // from the fifth on the server prepares it, and results are binary
            prepared.setInt(1, 3);
            prepared.setString(2, "f");
            prepared.setDate(3, Date.valueOf("2025-02-01"));
            ResultSet answer = prepared.executeQuery();
            answer.next();
            System.out.println(answer.getString(1) + " " + answer.getLong(2) + " " + answer.getDate(3));
        }
        try {
            connection.createStatement().executeQuery("SELECT COUNT(*) FROM nowhere");
        } catch (SQLException refusal) {
            System.out.println(refusal.getSQLState());
        }
        Statement slow = connection.createStatement();
        new Thread(() -> {
            try {
                Thread.sleep(60);
                slow.cancel();
            } catch (Exception problem) {
                System.out.println(problem);
            }
        }).start();
        try {
            slow.executeQuery("SELECT COUNT(*) FROM births WHERE age > 13");
        } catch (SQLException canceled) {
            System.out.println(canceled.getSQLState());
        }
        connection.setAutoCommit(false);
        Statement few = connection.createStatement();
        few.setFetchSize(2);
        ResultSet answer = few.executeQuery("SELECT sex, COUNT(*) AS n FROM births GROUP BY sex");
        int rows = 0;
        while (answer.next()) rows++;
        System.out.println(rows);
        connection.close();
    }
}
