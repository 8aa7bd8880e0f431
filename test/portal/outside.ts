/** What the portal finds in a browser, for tests without one: a service that answers as the test says, an address, and
 *  a history. */
// before there is a document, which it would listen to
import 'react-aria-components'
import { afterAll, beforeAll, beforeEach, vi } from 'vitest'

const ORIGIN = 'https://portal.example'

export interface Outside {
  /** What the service answers. */
  serve: (request: Request) => Response | Promise<Response>
  readonly requests: Request[]
  readonly location: { hash: string; pathname: string; search: string; origin: string }
  /** Where the page was left for. */
  readonly left: string[]
}

/** That of the file whose tests run: the portal keeps the `fetch` that it found first. */
let current: Outside | undefined

class PageRequest extends Request {
  constructor(input: string | URL | Request, init?: RequestInit) {
    super(typeof input === 'string' ? new URL(input, ORIGIN) : input, init)
  }
}

async function fetchOutside(input: string | Request, init?: RequestInit): Promise<Response> {
  const request = new PageRequest(input, init)
  current?.requests.push(request)
  return (await current?.serve(request)) ?? new Response(null, { status: 503 })
}

/** For the tests of a file: files share the globals of their process. */
export function useOutside(): Outside {
  const left: string[] = []
  const location = { hash: '', pathname: '/', search: '', origin: ORIGIN, assign: (href: string) => left.push(href) }
  const outside: Outside = { serve: () => new Response(null, { status: 204 }), requests: [], location, left }
  beforeAll(() => {
    current = outside
    vi.stubGlobal('Request', PageRequest)
    vi.stubGlobal('fetch', fetchOutside)
    vi.stubGlobal('location', location)
    vi.stubGlobal('document', { cookie: '', documentElement: { lang: '' }, querySelector: () => null })
    vi.stubGlobal('history', {
      state: null,
      replaceState: (_state: unknown, _title: string, address: string) => {
        const { pathname, search, hash } = new URL(address, ORIGIN)
        Object.assign(location, { pathname, search, hash })
      },
    })
    vi.stubGlobal('localStorage', { getItem: () => null, setItem: () => undefined })
  })
  beforeEach(() => {
    outside.requests.length = 0
    left.length = 0
  })
  afterAll(() => vi.unstubAllGlobals())
  return outside
}

/** A refusal, or a success, of the service. */
export const answer = (status: number, body: object, headers: Readonly<Record<string, string>> = {}): Response =>
  Response.json(body, { status, headers })
