/** A request and its response as plain values, so that the whole API runs with or without a socket. */

export interface HttpRequest {
  readonly method: string
  /** Path with its query string, as received. */
  readonly target: string
  /** Names in lower case; repeated ones joined as node:http does. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>
  /** The peer of the connection. */
  readonly remoteAddress: string
  readonly body?: string | Uint8Array | AsyncIterable<Uint8Array>
  /** The id of the request for which this one is made; both share it. A new id, when absent. */
  readonly requestId?: string
  /** Aborts when the client disconnects or the server stops. */
  readonly signal: AbortSignal
}

export interface HttpResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>
}

export type HttpService = (request: HttpRequest) => Promise<HttpResponse>
