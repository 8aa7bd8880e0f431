/** Every route that exists is the contract's, and what customers have once had stays. `routes.json` is the contract's
 *  list;
 *  `built.txt` lists what is built: UPDATE=1 adds to it, nothing takes away from it. */
import { readFile, writeFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { environment } from '../../kit/sys/process.ts'
import { ROUTES } from '../../resources/index.ts'

interface ContractRoute {
  readonly method: string
  readonly path: string
  readonly operation_id: string
  readonly audience: string
  readonly source: string
}

const contract = JSON.parse(await readFile(new URL('routes.json', import.meta.url), 'utf8')) as ContractRoute[]
const builtFile = new URL('built.txt', import.meta.url)
const lineOf = (route: { id: string; method: string; path: string; permission: string | null }) =>
  `${route.id} ${route.method} ${route.path} ${route.permission ?? '-'}`
const lines = ROUTES.map(lineOf).sort()

test('every route is one of the contract: same operationId, method, path and audience', () => {
  const audienceOf = (audience: string) => (audience === 'customer' ? 'customer' : 'operator')
  const known = new Map(contract.map((route) => [route.operation_id, route]))
  for (const route of ROUTES) {
    const wanted = known.get(route.id)
    expect
      .soft(wanted && { method: wanted.method, path: wanted.path, audience: audienceOf(wanted.audience) }, route.id)
      .toEqual({ method: route.method, path: route.path, audience: route.audience })
  }
})

test('no operationId and no method of a path is given twice', () => {
  expect(new Set(ROUTES.map((route) => route.id)).size).toBe(ROUTES.length)
  expect(new Set(ROUTES.map((route) => `${route.method} ${route.path.replaceAll(/\{\w+\}/g, '{}')}`)).size).toBe(
    ROUTES.length,
  )
})

test('what is built stays built, with its method, path and permission', async () => {
  const kept = (await readFile(builtFile, 'utf8')).trim().split('\n')
  expect(lines, 'a route that customers had is gone or different').toEqual(expect.arrayContaining(kept))
  if (environment()['UPDATE'] === '1') await writeFile(builtFile, `${lines.join('\n')}\n`)
  else expect(lines, 'a new route: run with UPDATE=1').toEqual(kept)
})
