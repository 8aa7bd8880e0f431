/** What a conformance scenario is: a name and steps, as data. A step is a kubectl command line or a raw request. Each
 *  scenario runs in a separate namespace, whose name is written `{ns}` in paths, arguments and bodies; `{name}` stands
 *  for a value that an earlier step remembered. */

/** A dotted path into an answer's JSON, for example `metadata.uid`, `items.0.metadata.name` or `items.*.metadata.name`.
 */
export type FieldPath = string

export interface KubectlStep {
  readonly kind: 'kubectl'
  readonly line: string
  /** A manifest for `-f -`: an object, or YAML as it is. */
  readonly stdin?: unknown
  /** Shell commands that `kubectl edit` runs on the file it offers (in `$1`). */
  readonly editor?: string
  /** Files that the command line names, by file name; they stand in the command's working directory. */
  readonly files?: Readonly<Record<string, unknown>>
  /** Leaves the command running under this name; `lines` and `finish` read what it says. */
  readonly background?: string
}

export interface RequestStep {
  readonly kind: 'request'
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  readonly path: string
  readonly body?: unknown
  /** Sent as Content-Type; JSON when there is a body and nothing is said. */
  readonly contentType?: string
  readonly accept?: string
  readonly headers?: Readonly<Record<string, string>>
  /** Response headers that belong in the transcript, besides Content-Type and Warning. */
  readonly showHeaders?: readonly string[]
  /** Shows only these parts of the answer. */
  readonly only?: readonly FieldPath[]
  /** Asks with this bearer token (usually a remembered one) in place of the administrator's. */
  readonly token?: string
  /** Names for parts of the answer that later steps need. */
  readonly remember?: Readonly<Record<string, FieldPath>>
  /** The same for response headers. */
  readonly rememberHeaders?: Readonly<Record<string, string>>
  /** Repeats the request until the answer has this status, and this value at this path if given. Only the last answer
   *  is shown. */
  readonly until?: {
    readonly status?: number
    readonly path?: FieldPath
    readonly equals?: unknown
    readonly absent?: FieldPath
  }
}

export type Step =
  | KubectlStep
  | RequestStep
  /** Opens a watch and keeps it; `frames` reads from it. */
  | { readonly kind: 'watch'; readonly name: string; readonly path: string; readonly accept?: string }
  /** Shows the next `count` frames of the watch. */
  | { readonly kind: 'frames'; readonly name: string; readonly count: number; readonly only?: readonly FieldPath[] }
  /** Shows what comes until the server ends the watch. */
  | { readonly kind: 'ended'; readonly name: string; readonly only?: readonly FieldPath[] }
  /** Waits until the background command has printed that many lines, and shows them. */
  | { readonly kind: 'lines'; readonly name: string; readonly count: number }
  /** Starts a validating webhook (see webhook.ts); `{webhookUrl}` and `{webhookCa}` stand for where it is. */
  | { readonly kind: 'webhook' }
  /** Shows these parts of the reviews that the webhook was asked for since the last time, dry runs left out. */
  | { readonly kind: 'reviews'; readonly only: readonly FieldPath[] }
  /** Waits for the background command to end, and shows the rest. */
  | { readonly kind: 'finish'; readonly name: string }

export interface Scenario {
  readonly name: string
  readonly steps: readonly Step[]
}

export interface Theme {
  readonly name: string
  readonly scenarios: readonly Scenario[]
}

type RequestOptions = Omit<RequestStep, 'kind' | 'method' | 'path' | 'body'>

export const scenario = (name: string, ...steps: readonly Step[]): Scenario => ({ name, steps })
export const kubectl = (line: string, options: Omit<KubectlStep, 'kind' | 'line'> = {}): Step => ({
  kind: 'kubectl',
  line,
  ...options,
})
/** `kubectl <line> -f -` with the manifest as its input. */
export const kubectlWith = (line: string, stdin: unknown): Step => kubectl(`${line} -f -`, { stdin })

export const get = (path: string, options: RequestOptions = {}): Step => ({
  kind: 'request',
  method: 'GET',
  path,
  ...options,
})
export const post = (path: string, body: unknown, options: RequestOptions = {}): Step => ({
  kind: 'request',
  method: 'POST',
  path,
  body,
  ...options,
})
export const put = (path: string, body: unknown, options: RequestOptions = {}): Step => ({
  kind: 'request',
  method: 'PUT',
  path,
  body,
  ...options,
})
export const del = (path: string, body?: unknown, options: RequestOptions = {}): Step => ({
  kind: 'request',
  method: 'DELETE',
  path,
  body,
  ...options,
})

const patch =
  (contentType: string) =>
  (path: string, body: unknown, options: RequestOptions = {}): Step => ({
    kind: 'request',
    method: 'PATCH',
    path,
    body,
    contentType,
    ...options,
  })
export const mergePatch = patch('application/merge-patch+json')
export const jsonPatch = patch('application/json-patch+json')
export const strategicPatch = patch('application/strategic-merge-patch+json')
/** Server-side apply; the field manager stands in the path's query. */
export const applyPatch = patch('application/apply-patch+yaml')

export const watch = (name: string, path: string, options: { accept?: string } = {}): Step => ({
  kind: 'watch',
  name,
  path,
  ...options,
})
export const frames = (name: string, count: number, options: { only?: readonly FieldPath[] } = {}): Step => ({
  kind: 'frames',
  name,
  count,
  ...options,
})
export const ended = (name: string, options: { only?: readonly FieldPath[] } = {}): Step => ({
  kind: 'ended',
  name,
  ...options,
})
export const webhook: Step = { kind: 'webhook' }
export const reviews = (...only: readonly FieldPath[]): Step => ({ kind: 'reviews', only })
export const lines = (name: string, count: number): Step => ({ kind: 'lines', name, count })
export const finish = (name: string): Step => ({ kind: 'finish', name })
