/** The Model Context Protocol as one pure decision: what a posted message is, and how to answer it. Stateless, JSON
 *  only, for the handshake revisions and for 2026-07-28 at the same endpoint. Knows no tool and no noun. Not decided
 *  here: method, Origin, token and rate limit, which come before, and tools, which come after. */
import { defined } from '../../../domain/defined.ts'
import { DEPTH_MAXIMUM, parseJson } from '../json.ts'

/** Revisions that start with `initialize`; the newest first. */
const HANDSHAKE_REVISIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const
/** Revisions in which every request carries its revision in `_meta` and in headers. */
const STATELESS_REVISIONS = ['2026-07-28'] as const
export const REVISIONS: readonly string[] = [...STATELESS_REVISIONS, ...HANDSHAKE_REVISIONS]
const [NEWEST_HANDSHAKE] = HANDSHAKE_REVISIONS
const [OLDEST_STATELESS] = STATELESS_REVISIONS

const PARSE_ERROR = -32700
const INVALID_REQUEST = -32600
const METHOD_NOT_FOUND = -32601
export const INVALID_PARAMS = -32602
const HEADER_MISMATCH = -32020
const UNSUPPORTED_REVISION = -32022

const META_REVISION = 'io.modelcontextprotocol/protocolVersion'
const META_CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities'

export type MessageId = string | number
export type Members = Readonly<Record<string, unknown>>

export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: Members
}

/** The content of a request that can be answered. */
export type ClientRequest =
  | { readonly method: 'initialize'; readonly revision: string }
  | { readonly method: 'ping' | 'server/discover' }
  | { readonly method: 'tools/list'; readonly cursor: string | undefined }
  | { readonly method: 'prompts/list'; readonly cursor: string | undefined }
  | { readonly method: 'prompts/get'; readonly name: string; readonly arguments: Members }
  | { readonly method: 'tools/call'; readonly name: string; readonly arguments: Members }

export type Decision =
  /** Answered 200 with a result, in the shape of its kind of revision. */
  | { readonly kind: 'answer'; readonly id: MessageId; readonly isStateless: boolean; readonly request: ClientRequest }
  /** Answered 200 with an error: the message is valid, but requests something that does not exist here. */
  | { readonly kind: 'error'; readonly id: MessageId; readonly error: RpcError }
  /** Answered 400 with an error whose id is null. */
  | { readonly kind: 'malformed'; readonly error: RpcError }
  /** A notification or a client's response: 202 without a body. */
  | { readonly kind: 'accepted' }

export interface PostedMessage {
  /** As received, regardless of its content type. */
  readonly body: Uint8Array
  /** A header by its lower-case name. */
  header(name: string): string | undefined
}

/** Decides about one posted message. Never throws. */
export function decide({ body, header }: PostedMessage): Decision {
  const message = parse(body)
  if (message === undefined) return malformed(PARSE_ERROR, `The body is not JSON of at most ${DEPTH_MAXIMUM} levels.`)
  if (Array.isArray(message)) return malformed(INVALID_REQUEST, 'Send one message at a time; batches are not taken.')
  if (!isObject(message) || message['jsonrpc'] !== '2.0')
    return malformed(INVALID_REQUEST, 'The body is not a JSON-RPC 2.0 message.')
  const { method, params = {}, id } = message
  if (method === undefined)
    return isResponse(message)
      ? { kind: 'accepted' }
      : malformed(INVALID_REQUEST, 'The message has neither a method nor one of result and error.')
  if (typeof method !== 'string') return malformed(INVALID_REQUEST, 'method must be a string.')
  if (!isObject(params)) return malformed(INVALID_REQUEST, 'params must be an object.')
  if ('id' in message && !isId(id))
    return malformed(INVALID_REQUEST, 'id must be a string or an integer that every JSON reader keeps exact.')
  const request: Request = { id: isId(id) ? id : undefined, method, params, header }
  return isStateless(request) ? decideStateless(request) : decideHandshake(request)
}

interface Request {
  /** Undefined for notifications. */
  readonly id: MessageId | undefined
  readonly method: string
  readonly params: Members
  readonly header: PostedMessage['header']
}

function parse(body: Uint8Array): unknown {
  try {
    return parseJson(new TextDecoder('utf-8', { fatal: true }).decode(body))
  } catch {
    return undefined
  }
}

const isObject = (value: unknown): value is Members =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
/** Numbers that lose digits would come back as another id. */
const isId = (value: unknown): value is MessageId => typeof value === 'string' || Number.isSafeInteger(value)
const isResponse = (message: Members): boolean => isId(message['id']) && 'result' in message !== 'error' in message

const malformed = (code: number, message: string, data?: Members): Decision => ({
  kind: 'malformed',
  error: { code, message, ...defined({ data }) },
})
const failed = (id: MessageId, code: number, message: string): Decision => ({
  kind: 'error',
  id,
  error: { code, message },
})

const VERSION_HEADER = 'mcp-protocol-version'
const METHOD_HEADER = 'mcp-method'
const NAME_HEADER = 'mcp-name'

const metaOf = ({ params }: Request): Members => (isObject(params['_meta']) ? params['_meta'] : {})

/** Revisions are dates, so their texts compare. */
const isStateless = (request: Request): boolean =>
  META_REVISION in metaOf(request) || (request.header(VERSION_HEADER)?.trim() ?? '') >= OLDEST_STATELESS

function decideHandshake(request: Request): Decision {
  const { id, method, header } = request
  const revision = header(VERSION_HEADER)?.trim()
  if (revision !== undefined && method !== 'initialize' && !isOneOf(HANDSHAKE_REVISIONS, revision))
    return unsupported(revision)
  if (id === undefined) return { kind: 'accepted' }
  const answer = (known: ClientRequest): Decision => ({ kind: 'answer', id, isStateless: false, request: known })
  switch (method) {
    case 'initialize': {
      const { protocolVersion } = request.params
      return answer({
        method,
        revision: isOneOf(HANDSHAKE_REVISIONS, protocolVersion) ? protocolVersion : NEWEST_HANDSHAKE,
      })
    }
    case 'ping':
      return answer({ method })
    default:
      return decideTools(request, id, false)
  }
}

function decideStateless(request: Request): Decision {
  const { id, method, header } = request
  if (id === undefined) return { kind: 'accepted' }
  const meta = metaOf(request)
  const revision = meta[META_REVISION]
  if (revision !== undefined && header(VERSION_HEADER)?.trim() !== revision)
    return mismatch('MCP-Protocol-Version', `_meta["${META_REVISION}"]`)
  if (typeof revision !== 'string' || !isObject(meta[META_CAPABILITIES])) {
    return malformed(
      INVALID_PARAMS,
      `params._meta needs ${META_REVISION} (a string) and ${META_CAPABILITIES} (an object).`,
    )
  }
  if (!isOneOf(STATELESS_REVISIONS, revision)) return unsupported(revision)
  if (header(METHOD_HEADER)?.trim() !== method) return mismatch('Mcp-Method', 'method')
  const named = NAMED_METHODS.get(method)
  if (named !== undefined) {
    const name = request.params[named]
    if (typeof name !== 'string') return malformed(INVALID_PARAMS, `params.${named} must be a string.`)
    if (decodeHeader(header(NAME_HEADER)) !== name) return mismatch('Mcp-Name', `params.${named}`)
  }
  return method === 'server/discover'
    ? { kind: 'answer', id, isStateless: true, request: { method } }
    : decideTools(request, id, true)
}

/** Methods whose target a header repeats, and the parameter that names it. */
const NAMED_METHODS: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

function decideTools({ method, params }: Request, id: MessageId, isStateless: boolean): Decision {
  if (method === 'tools/list' || method === 'prompts/list') {
    const { cursor } = params
    if (cursor !== undefined && typeof cursor !== 'string')
      return failed(id, INVALID_PARAMS, 'cursor must be a string.')
    return { kind: 'answer', id, isStateless, request: { method, cursor } }
  }
  if (method === 'tools/call' || method === 'prompts/get') {
    const { name, arguments: values = {} } = params
    if (typeof name !== 'string') return failed(id, INVALID_PARAMS, 'name must be a string.')
    if (!isObject(values)) return failed(id, INVALID_PARAMS, 'arguments must be an object.')
    return { kind: 'answer', id, isStateless, request: { method, name, arguments: values } }
  }
  return failed(id, METHOD_NOT_FOUND, `There is no method ${method}.`)
}

const isOneOf = <Value extends string>(values: readonly Value[], value: unknown): value is Value =>
  values.some((one) => one === value)
const mismatch = (header: string, member: string): Decision =>
  malformed(HEADER_MISMATCH, `The header ${header} must be sent and equal ${member}.`)
const unsupported = (requested: string): Decision =>
  malformed(UNSUPPORTED_REVISION, `The revision ${requested} is not served.`, { supported: REVISIONS, requested })

/** Header values that plain ASCII cannot express are encoded as `=?base64?...?=`. Undefined when missing or not
 *  decodable. */
function decodeHeader(value: string | undefined): string | undefined {
  const text = value?.trim()
  const encoded = /^=\?base64\?([A-Za-z0-9+/]*={0,2})\?=$/.exec(text ?? '')?.[1]
  if (encoded === undefined) return text
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(encoded, 'base64'))
  } catch {
    return undefined
  }
}

/** The message of a result, with the members that stateless revisions require of every one. */
export function resultMessage(
  id: MessageId,
  result: Members,
  stateless: { readonly serverInfo: Members; readonly caching?: Members } | undefined,
): Members {
  if (stateless === undefined) return { jsonrpc: '2.0', id, result }
  const meta = {
    ...(isObject(result['_meta']) ? result['_meta'] : {}),
    'io.modelcontextprotocol/serverInfo': stateless.serverInfo,
  }
  return { jsonrpc: '2.0', id, result: { resultType: 'complete', ...result, ...stateless.caching, _meta: meta } }
}

export const errorMessage = (id: MessageId | null, error: RpcError): Members => ({ jsonrpc: '2.0', id, error })
