// The OpenAPI document as a page.

import { boardText, emptyBoard } from "./rules.js";

function element(tag, text, ...children) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function table(head, rows) {
  const cells = (tag, texts) => texts.map((text) => element(tag, text));
  return element("table", "",
    element("thead", "", element("tr", "", ...cells("th", head))),
    element("tbody", "", ...rows.map((row) => element("tr", "", ...cells("td", row)))));
}

function operation(path, method, board, { summary, description, parameters, requestBody, responses }) {
  const parts = [element("h2", `${method.toUpperCase()} ${path}`), element("p", description ?? summary)];
  if (parameters) {
    parts.push(table(["parameter", "", ""], parameters.map(
      ({ name, required, description: what }) => [name, required ? "required" : "optional", what])));
  }
  if (requestBody) parts.push(element("h3", "Body"), example(requestBody));
  parts.push(element("h3", "Answers"));
  parts.push(table(["status", ""], Object.entries(responses).map(([status, { description: what }]) => [status, what])));
  if (method === "get") parts.push(tryOut(path, parameters ?? [], board));
  return element("section", "", ...parts);
}

const example = ({ content }) =>
  element("pre", JSON.stringify(Object.values(content)[0].example, null, 2));

/** A request to try, and what is answered to it here; `board` is one of the first solution. */
function tryOut(path, parameters, board) {
  const address = parameters.length ? `${path}?b=${board}` : path;
  const button = element("button", "Try");
  const shown = element("pre");
  shown.hidden = true;
  button.addEventListener("click", async () => {
    shown.hidden = false;
    shown.textContent = JSON.stringify(await getJson(address), null, 2);
  });
  return element("div", "", element("p", "", button, " ", element("code", address)), shown);
}

const getJson = async (address) => (await fetch(address)).json();

async function main() {
  const document_ = await getJson("/api/v1/openapi.json");
  const { rows, columns } = (await getJson("/api/v1/meta")).solutions[0];
  const start = emptyBoard(rows, columns);
  start[0][0] = start[rows - 1][columns - 1] = 2;
  const board = boardText(start);
  const sections = Object.entries(document_.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, found]) => operation(path, method, board, found)));
  const codes = document_.components.schemas.Error.properties.error.properties.code;
  const reference = document.querySelector("#reference");
  reference.append(element("p", document_.info.description), ...sections,
    element("h2", "Errors"), element("p", codes.description),
    table(["code"], codes.enum.map((code) => [code])));
}

main();
