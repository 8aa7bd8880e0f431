/** The MCP endpoint of this API: the instructions that a model gets first, and the path of its messages to the
 *  routes. */
import { customerEndpoint, type Endpoint } from '../../kit/http/endpoint.ts'
import type { HttpService } from '../../kit/http/exchange.ts'
import { createMcp, type McpView } from '../../kit/http/mcp/endpoint.ts'
import { type Tool, toolsOf } from '../../kit/http/mcp/tools.ts'
import type { RequestFacts } from '../../kit/http/call.ts'
import { PROMPTS } from './prompts.ts'
import { FIELD_DESCRIPTIONS } from '../../resources/descriptions.ts'
import { ROUTES } from '../../resources/index.ts'
import { sendMcpMessage } from '../../resources/mcp/index.ts'

const INSTRUCTIONS = `svccloud is a cloud: servers (virtual machines) and what belongs to them. Every tool is one \
operation of its REST API.

- To make a server: list_zones, list_plans and list_templates say what there is; the account needs an SSH key \
(list_ssh_keys, create_ssh_key); then create_server.
- Changes of infrastructure answer at once with an operation that is still running. Call get_operation with its id \
and wait (up to 30 seconds) until status is succeeded, failed or cancelled; failed ones say why in error.
- A resource with an active_operation refuses other changes with 409 operation_in_progress. Wait for that operation.
- Lists answer {items, next_cursor}. Pass next_cursor as cursor for the next page; null means that was the last.
- To learn what changed, by whomever: read_changes with the cursor of its last answer; it can wait for the next change.
- A refused call is an error result with HTTP status, detail and often a reason. 403: the token or its user may not. \
422 quota_exceeded: ask for more or delete something. 429: wait.
- To run a command in a server: send_server_console_input types (base64, with a newline), read_server_console reads \
since a position and waits for a text. whoami says who you act for.
- Deleting cannot be undone. Ask the person before you call a tool that is marked as destructive.
- Amounts ending in _cents are 1/100 EUR, in _millicents 1/100000 EUR. Times are UTC.`

export interface McpParts {
  /** The complete customer API. Called only when a tool is called. */
  readonly service: HttpService
  readonly version: string
}

let tools: readonly Tool[] | undefined
/** Created once in a process, for the first message: their schemas take a fifth of a second. */
const toolsOfApi = (): readonly Tool[] =>
  (tools ??= toolsOf(ROUTES, { names: { get_account: 'whoami' }, descriptions: FIELD_DESCRIPTIONS }))

export function mcpEndpoint({ service, version }: McpParts): Endpoint {
  const send = createMcp({
    service,
    tools: toolsOfApi,
    serverInfo: { name: 'svccloud', title: 'svccloud', version },
    instructions: INSTRUCTIONS,
    metaPrefix: 'svccloud.dev/',
    prompts: PROMPTS,
  })
  return customerEndpoint(sendMcpMessage, ({ caller, request, query, body }) =>
    // the route reads bytes
    send({ caller, request, view: viewOf(query, request), body: body as unknown as Uint8Array }),
  )
}

type Query = {
  readonly toolsets?: string | undefined
  readonly readonly?: boolean | undefined
  readonly mode?: string | undefined
  readonly schemas?: string | undefined
}

/** From the address, or from headers where a client can set only those. */
function viewOf({ toolsets, readonly, mode, schemas }: Query, request: RequestFacts): McpView {
  const chosen = toolsets ?? request.header('x-mcp-toolsets')
  const header = request.header('x-mcp-readonly')
  return {
    toolsets: chosen?.split(',').map((name) => name.trim()),
    isReadOnly: readonly ?? (header !== undefined && !['', '0', 'false'].includes(header)), // any other value is on
    isSearch: mode === 'search',
    hasOutputSchemas: schemas === 'output',
  }
}
