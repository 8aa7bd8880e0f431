/** Nouns that the product of the tier refuses to make, because they need guests that run and those are simulated. The
 *  first attempt is refused by the product itself. What follows is answered with the examples of the document that the
 *  product serves, with what was sent in them; each answer is held against the document. */
import type { Page, Route } from 'playwright-core'
import { openDocumentCheck } from '../../../contract/document-check.ts'

export interface Answered {
  /** Its member of answers. */
  readonly member: string
  /** Of its list in the API. */
  readonly path: string
  /** Where it is made; by default in its list. */
  readonly madeAt?: RegExp
  /** The product would make it, but not what belongs to it: the first attempt is answered, too. */
  readonly isOffered?: boolean
  /** Fields that differ from those of the example. */
  readonly facts?: object
  /** Members of other answers, by path below that of the item, or in the API. */
  readonly others?: Readonly<Record<string, object>>
}

interface Response {
  readonly content?: { readonly 'application/json'?: { readonly example?: object } }
}
interface Document {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses: Readonly<Record<string, Response>> }>>>
  >
}
type Fields = Readonly<Record<string, unknown>>

const STATUSES = [200, 201, 202] as const
const GONE = { type: 'about:blank', title: 'Not Found', status: 404, detail: 'It is deleted.' }
const REQUEST_ID = '0198f000-0000-7000-8000-000000000099'

/** The example of a path of the API: that of a change, because answers of dry runs have none. */
function exampleOf({ paths }: Document, method: string, path: string): readonly [number, Fields] {
  const [, methods] =
    Object.entries(paths).find(([template]) =>
      new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
    ) ?? []
  for (const status of STATUSES) {
    const example = methods?.[method.toLowerCase()]?.responses[status]?.content?.['application/json']?.example
    if (example !== undefined) return [status, example as Fields] // an object of JSON
  }
  throw new Error(`${method} ${path} has no example`)
}

/** The fields that the other one has, too. */
const takenOver = (item: Fields, from: Fields): Fields =>
  Object.fromEntries(Object.entries(from).filter(([name]) => name in item))

export async function answerAs(
  page: Page,
  url: string,
  { member, path, madeAt = new RegExp(`^${path}$`), facts = {}, others = {}, isOffered = false }: Answered,
): Promise<void> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Document // as it is checked
  const check = openDocumentCheck(document)
  let isRefused = isOffered
  let item: Fields | undefined
  let isGone = false

  async function answer(route: Route, method: string, at: string, members: Fields = {}): Promise<void> {
    const [status, example] = exampleOf(document, method, at)
    const isWhole = method === 'GET' && !('items' in example)
    const own =
      item === undefined || !(member in example)
        ? {}
        : { [member]: { ...takenOver(Object(example[member]), item), ...(isWhole ? facts : {}) } }
    const json = { ...example, ...own, ...members }
    const header = (name: string) =>
      name === 'content-type' ? 'application/json' : name === 'x-request-id' ? REQUEST_ID : undefined
    const fault = check.faultOf(method, at, { status, header, text: JSON.stringify(json) })
    if (fault !== undefined) throw new Error(`${method} ${at}: ${fault}`)
    await route.fulfill({ status, json })
  }

  await page.route(`${url}/v1/**`, async (route) => {
    const request = route.request()
    const method = request.method()
    const { pathname, searchParams } = new URL(request.url())
    const sent = (request.postDataJSON() ?? {}) as Fields // the portal sends objects
    if (searchParams.has('dry_run')) return await route.fallback()
    if (method === 'POST' && madeAt.test(pathname)) {
      if (!isRefused) {
        isRefused = true
        return await route.fallback()
      }
      const example = { ...(exampleOf(document, 'GET', `${path}/1`)[1][member] as Fields), ...facts } // its item
      item = { ...example, ...takenOver(example, sent) }
      return await answer(route, method, pathname)
    }
    const below = item === undefined ? undefined : pathname.split(`${path}/${String(item['id'])}`)[1]
    const other = others[below ?? pathname] ?? others[pathname]
    if (other !== undefined) return await answer(route, method, pathname, other as Fields) // named by the test
    if (item === undefined) return await route.fallback()
    if (method === 'GET' && pathname === path) {
      const [listed = {}] = exampleOf(document, method, pathname)[1]['items'] as readonly Fields[] // of a page
      return await answer(route, method, pathname, { items: isGone ? [] : [takenOver(listed, item)] })
    }
    if (below === undefined) return await route.fallback()
    if (below !== '') return await answer(route, method, pathname)
    if (isGone) return await route.fulfill({ status: 404, contentType: 'application/problem+json', json: GONE })
    if (method === 'PATCH') item = { ...item, ...takenOver(item, sent) }
    isGone = method === 'DELETE'
    await answer(route, method, pathname)
  })
}
