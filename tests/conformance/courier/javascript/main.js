// The courier in JavaScript.
import { allow, deny, files, http, secrets, subscriptions, tool, toolGate } from "holdfast";

tool(
  {
    name: "deliver",
    description: "Fetches, reads, writes and subscribes.",
    effects: "network",
    parameters: {
      url: { type: "string", description: "What is fetched." },
      folder: { type: "string", description: "The folder that is read." },
    },
  },
  ({ url, folder }) => {
    const token = secrets.reference("TOKEN");
    const response = http.send({ url, headers: { authorization: `Bearer ${token}` } });
    const note = files.readText(`${folder}/note.txt`);
    files.write("copy.txt", note);
    const names = files.list(folder).map((entry) => entry.name);
    subscriptions.subscribe("news.weather");
    return `${response.status} ${response.text()} | ${note} | ${names.join(" ")}`;
  },
);

toolGate((call) => {
  const isWeb = String(call.arguments.url).startsWith("http");
  return call.tool === "deliver" && !isWeb ? deny("it delivers from the web only") : allow();
});
