/** Three tools instead of one for each operation, for clients with little room: find operations, call a reading one,
 *  call a writing one. */
import { z } from 'zod'
import type { Members } from './protocol.ts'
import type { ShownTool, Tool } from './tools.ts'

const FOUND_MAXIMUM = 8
const QUERY_LENGTH_MAXIMUM = 200

const SearchArguments = z.strictObject({
  query: z
    .string()
    .max(QUERY_LENGTH_MAXIMUM)
    .describe('Words of what you want to do, for example "stop a server". Empty lists the names of all operations.'),
})
const CallArguments = z.strictObject({
  name: z.string().describe('Name of an operation, as search_operations gives it.'),
  arguments: z.looseObject({}).optional().describe("The operation's arguments, in the shape of its inputSchema."),
})

const shown = (name: string, title: string, description: string, schema: z.ZodType, isReading: boolean): ShownTool => {
  const { $schema: _dialect, ...inputSchema } = z.toJSONSchema(schema, { io: 'input', reused: 'inline' })
  return {
    name,
    title,
    description,
    inputSchema,
    annotations: {
      readOnlyHint: isReading,
      destructiveHint: !isReading,
      idempotentHint: isReading,
      openWorldHint: false,
    },
  }
}

export const SEARCH_TOOLS = {
  search: shown(
    'search_operations',
    'Find operations',
    'Finds operations of this service by words, with their arguments. Call what you find with read_operation or ' +
      'write_operation.',
    SearchArguments,
    true,
  ),
  read: shown(
    'read_operation',
    'Call an operation that only reads',
    'Calls an operation that changes nothing and reveals no credential.',
    CallArguments,
    true,
  ),
  write: shown(
    'write_operation',
    'Call an operation that changes something',
    'Calls an operation that changes something or reveals a credential.',
    CallArguments,
    false,
  ),
} as const

export type SearchStep =
  | { readonly found: Members }
  | { readonly call: string; readonly arguments: Members; readonly mustOnlyRead: boolean }
  | { readonly fault: string }

/** The effect of a call of one of the three; undefined for other names. `offered` are the tools that the caller may
 *  use. */
export function searchStep(name: string, values: Members, offered: readonly Tool[]): SearchStep | undefined {
  if (name === SEARCH_TOOLS.search.name) {
    const parsed = SearchArguments.safeParse(values)
    return parsed.success
      ? { found: find(parsed.data.query, offered) }
      : { fault: 'query is required and must be a text' }
  }
  if (name !== SEARCH_TOOLS.read.name && name !== SEARCH_TOOLS.write.name) return undefined
  const parsed = CallArguments.safeParse(values)
  if (!parsed.success) return { fault: 'name is required and must be a text; arguments must be an object' }
  return {
    call: parsed.data.name,
    arguments: parsed.data.arguments ?? {},
    mustOnlyRead: name === SEARCH_TOOLS.read.name,
  }
}

/** The operations with most of the words, name before title before description; each word counts once. */
function find(query: string, offered: readonly Tool[]): Members {
  const words = query
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')
  if (words.length === 0) return { names: offered.map((tool) => tool.shown.name) }
  const scored = offered
    .map((tool) => ({ tool, score: words.reduce((sum, word) => sum + scoreOf(tool, word), 0) }))
    .filter(({ score }) => score > 0)
  scored.sort((one, other) => other.score - one.score || (one.tool.shown.name < other.tool.shown.name ? -1 : 1))
  return { operations: scored.slice(0, FOUND_MAXIMUM).map(({ tool }) => tool.shown) }
}

function scoreOf({ shown: { name, title, description } }: Tool, word: string): number {
  const stem = word.length > 3 ? word.replace(/s$/, '') : word
  if (name.split('_').some((part) => part === word || part.replace(/s$/, '') === stem)) return 4
  if (title.toLowerCase().includes(stem)) return 2
  return description.toLowerCase().includes(stem) ? 1 : 0
}
