/** The MCP endpoint as a handler: decides about the message, answers it from the tools, dispatches calls into the
 *  API. */
import { defined } from '../../../domain/defined.ts'
import { printable } from '../../../domain/printable.ts'
import { badField, rateLimited } from '../../../domain/problem.ts'
import type { Answer, Customer, RequestFacts } from '../call.ts'
import { isReadOnlyToken } from '../steps/credential-guard.ts'
import { type Dispatcher, dispatch, type ToolResult } from './dispatch.ts'
import {
  type Decision,
  decide,
  errorMessage,
  INVALID_PARAMS,
  type Members,
  resultMessage,
  REVISIONS,
} from './protocol.ts'
import { SEARCH_TOOLS, searchStep } from './search.ts'
import { type Prompt, promptFault } from './prompts.ts'
import { isAllowed, isChosen, type ShownTool, type Tool, type ToolFilter } from './tools.ts'

export interface McpOptions extends Dispatcher {
  /** Requested with each message. */
  readonly tools: () => readonly Tool[]
  readonly serverInfo: { readonly name: string; readonly title: string; readonly version: string }
  /** Jobs that people choose from a menu of their client. */
  readonly prompts: readonly Prompt[]
  /** Instructions for a model before it calls anything; under 2 kB. */
  readonly instructions: string
}

/** How a client wants the tools shown, for one request. */
export interface McpView extends ToolFilter {
  readonly isSearch: boolean
  readonly hasOutputSchemas: boolean
}

export interface McpCall {
  readonly caller: Customer
  readonly request: RequestFacts
  readonly body: Uint8Array
  readonly view: McpView
}

const CONCURRENT_MAXIMUM = 4
const TOOLS_PER_PAGE = 250
/** How long a client may use a list of tools; roles and scopes change rarely. */
const TOOLS_FRESH_MILLISECONDS = 300_000
const DISCOVERY_FRESH_MILLISECONDS = 3_600_000
const BUSY_RETRY_SECONDS = 1

export function createMcp(options: McpOptions): (call: McpCall) => Promise<Answer> {
  const running = new Map<string, number>()

  return async (call) => {
    const decision = decide({ body: call.body, header: (name) => call.request.header(name) })
    if (decision.kind === 'accepted') return { status: 202 }
    if (decision.kind === 'malformed') return { status: 400, body: errorMessage(null, decision.error) }
    if (decision.kind === 'error') return { status: 200, body: errorMessage(decision.id, decision.error) }
    const tools = options.tools()
    const unknown = call.view.toolsets?.find((name) => !tools.some(({ toolset }) => toolset === name))
    if (unknown !== undefined) throw badField('toolsets', `there is no toolset ${unknown}`)
    const key = call.caller.token?.id ?? call.caller.userId
    const others = running.get(key) ?? 0
    if (others >= CONCURRENT_MAXIMUM)
      throw rateLimited(
        BUSY_RETRY_SECONDS,
        `At most ${CONCURRENT_MAXIMUM} messages of a token are answered at the same time.`,
      )
    running.set(key, others + 1)
    try {
      return { status: 200, body: await answer(options, tools, call, decision) }
    } finally {
      const left = (running.get(key) ?? 1) - 1
      if (left === 0) running.delete(key)
      else running.set(key, left)
    }
  }
}

async function answer(
  options: McpOptions,
  tools: readonly Tool[],
  call: McpCall,
  { id, isStateless, request }: Extract<Decision, { kind: 'answer' }>,
): Promise<Members> {
  const { serverInfo, instructions } = options
  const reply = (result: Members, caching?: Members) =>
    resultMessage(id, result, isStateless ? { serverInfo, ...defined({ caching }) } : undefined)
  const invalid = (message: string) => errorMessage(id, { code: INVALID_PARAMS, message })
  switch (request.method) {
    case 'initialize':
      return reply({ protocolVersion: request.revision, capabilities: CAPABILITIES, serverInfo, instructions })
    case 'ping':
      return reply({})
    case 'server/discover':
      return reply(
        { supportedVersions: REVISIONS, capabilities: CAPABILITIES, instructions },
        { ttlMs: DISCOVERY_FRESH_MILLISECONDS, cacheScope: 'public' },
      )
    case 'tools/list': {
      const page = pageOf(listed(tools, call), request.cursor)
      return page === undefined
        ? invalid('The cursor is not of this list.')
        : reply(page, { ttlMs: TOOLS_FRESH_MILLISECONDS, cacheScope: 'private' })
    }
    case 'prompts/list':
      return request.cursor === undefined
        ? reply(
            { prompts: options.prompts.map(({ render: _render, ...shown }) => shown) },
            { ttlMs: DISCOVERY_FRESH_MILLISECONDS, cacheScope: 'public' },
          )
        : invalid('The cursor is not of this list.')
    case 'prompts/get': {
      const prompt = options.prompts.find(({ name }) => name === request.name)
      if (prompt === undefined) return invalid(`There is no prompt ${request.name} here.`)
      const fault = promptFault(prompt, request.arguments)
      if (fault !== undefined) return invalid(fault)
      const text = prompt.render(request.arguments as Readonly<Record<string, string>>) // as promptFault has found
      return reply({
        description: prompt.description,
        messages: [{ role: 'user', content: { type: 'text', text } }],
      })
    }
    case 'tools/call': {
      const result = await callTool(options, tools, call, request)
      return result === undefined ? invalid(`There is no tool ${request.name} here.`) : reply(result)
    }
  }
}

const CAPABILITIES = { tools: {}, prompts: {} } as const

function offered(tools: readonly Tool[], { caller, view }: McpCall): readonly Tool[] {
  const isReadOnly = isReadOnlyToken(caller)
  return tools.filter((tool) => isChosen(tool, view) && isAllowed(tool, caller, isReadOnly))
}

function listed(tools: readonly Tool[], call: McpCall): readonly (ShownTool & { readonly outputSchema?: Members })[] {
  const { isSearch, isReadOnly, hasOutputSchemas } = call.view
  if (isSearch) return [SEARCH_TOOLS.read, SEARCH_TOOLS.search, ...(isReadOnly ? [] : [SEARCH_TOOLS.write])]
  return offered(tools, call).map(({ shown, outputSchema }) => ({
    ...shown,
    ...(hasOutputSchemas && outputSchema !== undefined ? { outputSchema } : {}),
  }))
}

/** The tools after the one that the cursor names; undefined when the cursor names no tool. */
function pageOf(all: readonly ShownTool[], cursor: string | undefined): Members | undefined {
  const after =
    cursor === undefined ? -1 : all.findIndex(({ name }) => name === Buffer.from(cursor, 'base64url').toString())
  if (cursor !== undefined && after < 0) return undefined
  const tools = all.slice(after + 1, after + 1 + TOOLS_PER_PAGE)
  const last = tools.at(-1)
  const hasMore = after + 1 + tools.length < all.length
  return {
    tools,
    ...(hasMore && last !== undefined ? { nextCursor: Buffer.from(last.name).toString('base64url') } : {}),
  }
}

/** Undefined for names that are not tools in this view. Tools that the token may not call are dispatched: their route
 *  refuses, and the refusal is audited. */
async function callTool(
  options: McpOptions,
  tools: readonly Tool[],
  call: McpCall,
  { name, arguments: values }: { readonly name: string; readonly arguments: Members },
): Promise<ToolResult | undefined> {
  const step = call.view.isSearch ? searchStep(name, values, offered(tools, call)) : undefined
  if (step !== undefined && 'fault' in step) return wrong(step.fault)
  if (step !== undefined && 'found' in step)
    return {
      content: [{ type: 'text', text: printable(JSON.stringify(step.found)) }],
      structuredContent: step.found,
      isError: false,
    }
  const target = tools.find((tool) => tool.shown.name === (step?.call ?? name) && isChosen(tool, call.view))
  if (target === undefined)
    return step === undefined
      ? undefined
      : wrong(`there is no operation ${step.call}; find one with ${SEARCH_TOOLS.search.name}`)
  if (step?.mustOnlyRead === true && !target.shown.annotations.readOnlyHint)
    return wrong(`${step.call} does more than read: call it with ${SEARCH_TOOLS.write.name}`)
  const hasOutputSchema = call.view.hasOutputSchemas && target.outputSchema !== undefined
  return dispatch(options, {
    request: call.request,
    route: target.route,
    arguments: step?.arguments ?? values,
    hasOutputSchema,
  })
}

const wrong = (fault: string): ToolResult => ({
  content: [{ type: 'text', text: printable(`400 Bad Request: ${fault}.`) }],
  isError: true,
})
