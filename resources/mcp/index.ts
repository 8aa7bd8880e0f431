/** The MCP endpoint: its route and the shapes of JSON-RPC. `kit/http/mcp` implements it. */
import { z } from 'zod'
import { route } from '../kit/define.ts'

const MessageId = z.union([z.string(), z.int()])
const RpcError = z.looseObject({ code: z.int(), message: z.string(), data: z.looseObject({}).optional() })

export const McpMessage = z
  .looseObject({
    jsonrpc: z.literal('2.0'),
    id: MessageId.optional().describe('Absent for notifications.'),
    method: z.string().optional(),
    params: z.looseObject({}).optional(),
  })
  .meta({ id: 'MCPMessage', description: 'One JSON-RPC 2.0 message.' })
export const McpResponse = z
  .strictObject({
    jsonrpc: z.literal('2.0'),
    id: MessageId.nullable(),
    result: z.looseObject({}).optional(),
    error: RpcError.optional(),
  })
  .meta({ id: 'MCPResponse' })

const FLAGS = ['', '0', '1', 'true', 'false'] as const
const Flag = z
  .enum(FLAGS)
  .transform((text) => !['', '0', 'false'].includes(text))
  .optional()

export const sendMcpMessage = route({
  id: 'send_mcp_message',
  noDryRun: 'the tools that it calls take them',
  method: 'POST',
  path: '/mcp',
  summary: 'Send a Model Context Protocol message',
  credentials: ['token'],
  permission: null,
  description:
    'Stateless, with JSON answers only. Every tool is an operation of this API, with the permissions of the ' +
    "token's scope and its user's role.",
  readsBodyAs: 'bytes',
  isSameOriginOnly: true,
  budget: 'mcp',
  query: z.strictObject({
    toolsets: z
      .string()
      .max(1024)
      .optional()
      .describe('Includes only the tools of these path prefixes, separated by commas, as in servers,ssh-keys.'),
    readonly: Flag.describe('Includes only tools that change nothing and reveal no credential.'),
    mode: z.enum(['search']).optional().describe('search: three tools for finding and calling operations.'),
    schemas: z.enum(['output']).optional().describe('output: includes the schemas of answers.'),
  }),
  body: McpMessage,
  example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  answers: { 200: McpResponse, 202: null, 400: McpResponse },
})

export const MCP_ROUTES = [sendMcpMessage] as const
