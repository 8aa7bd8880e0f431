/** The interface between the Kubernetes client and its server: HTTPS to a real or embedded API server, or a function
 *  call into the embedded server in the same process. The simulation injects its faults here. */

export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Absolute path with its query string, for example `/apis/svccloud.dev/v1alpha1/servers?limit=500`. */
  readonly path: string
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

export interface TransportResponse {
  readonly status: number
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The complete body. Call this or `lines`, once. */
  text(): Promise<string>
  /** The body as it arrives, split at newlines; ends with the stream, throws when the connection breaks. */
  lines(): AsyncIterable<string>
}

/** Returns a response for every HTTP status; throws only when there was no response. */
export type Transport = (request: TransportRequest) => Promise<TransportResponse>
