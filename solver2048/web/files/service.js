// Questions to the service.

async function getJson(address) {
  try {
    const response = await fetch(address, { headers: { accept: "application/json" } });
    return await response.json();
  } catch {
    return { error: { code: "no_service", message: "The service does not answer." } };
  }
}

export const askMeta = () => getJson("/api/v1/meta");

/** What a solution says of a board, given as text: its values, or {error: {code, message}}. */
export function askBoard(solution, text) {
  // Cells stay readable in the address: only what has a meaning of its own is escaped.
  return getJson(`/api/v1/board?solution=${encodeURIComponent(solution)}&b=${encodeURIComponent(text)}`);
}
