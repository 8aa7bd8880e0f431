/** Names instead of ids: a text that is not a UUID is looked up in the list of the noun. */
import type { Api, Members } from './api.ts'
import type { Command } from './commands.ts'
import { EXIT, Failure } from './exit.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
const NAME_FIELDS = ['id', 'name', 'hostname', 'title']
/** Maximum number of pages to search; resources further back need their id. */
const PAGES_MAXIMUM = 50
const PAGE_ITEMS = 100

/** The id of the named resource; the text itself when no resource has that name, for the service to refuse. Throws a
 *  Failure when several have it. */
export async function idOf(api: Api, commands: readonly Command[], noun: string, text: string): Promise<string> {
  const list = listOf(commands, noun)
  if (UUID.test(text) || list === undefined) return text
  const found = new Set<string>()
  let cursor: string | null = null
  for (let page = 0; page < PAGES_MAXIMUM; page += 1) {
    const { items, next_cursor } = await pageOf(api, list, cursor)
    for (const item of items) {
      if (item['id'] === text || (item['id'] === undefined && item['name'] === text)) return text
      if (NAME_FIELDS.some((field) => item[field] === text)) found.add(String(item['id'] ?? item['name']))
    }
    cursor = next_cursor
    if (cursor === null) break
  }
  if (found.size > 1) throw new Failure(EXIT.usage, `several are called ${text}: ${[...found].join(', ')}`)
  return [...found][0] ?? text
}

const listOf = (commands: readonly Command[], noun: string): Command | undefined =>
  commands.find((command) => command.noun === noun && command.verb === 'list' && command.parameters.length === 0)

async function pageOf(
  api: Api,
  { route, flags }: Command,
  cursor: string | null,
): Promise<{ readonly items: readonly Members[]; readonly next_cursor: string | null }> {
  const query = new URLSearchParams({
    ...(flags.some(({ field }) => field === 'limit') ? { limit: String(PAGE_ITEMS) } : {}),
    ...(cursor === null ? {} : { cursor }),
  })
  const { body } = await api.send({ method: 'GET', path: query.size === 0 ? route.path : `${route.path}?${query}` })
  return body as { items: readonly Members[]; next_cursor: string | null } // every list has this shape
}

/** The noun of a field: `snapshot` for `source_snapshot_id`. Undefined when it has no list. */
function nounOf(commands: readonly Command[], field: string): string | undefined {
  const words = /^(.+)_ids?$/.exec(field)?.[1]?.split('_') ?? []
  return words.map((_word, index) => words.slice(index).join('-')).find((noun) => listOf(commands, noun) !== undefined)
}

/** Fields that contain ids of resources: `ssh_key_ids` accepts names of SSH keys too. */
export async function withIds(api: Api, commands: readonly Command[], fields: Members): Promise<Members> {
  const resolved: Record<string, unknown> = { ...fields }
  for (const [field, value] of Object.entries(fields)) {
    const noun = nounOf(commands, field)
    if (noun === undefined) continue
    if (typeof value === 'string') resolved[field] = await idOf(api, commands, noun, value)
    if (Array.isArray(value))
      resolved[field] = await Promise.all(value.map((each) => idOf(api, commands, noun, String(each))))
  }
  return resolved
}
