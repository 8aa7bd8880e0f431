/** Why keys with control characters are refused on a single host: the engine keeps them, and no list of it can show
 *  them. */
import { expect, test } from 'vitest'
import { engineKeyRefusal } from '../../../kit/s3/names.ts'
import { type Answer, openTestEngines, type TestTenant } from './cells.ts'

type Cells = Awaited<ReturnType<typeof openTestEngines>>
const escape = (key: string): string => encodeURIComponent(key)
const put = (cells: Cells, tenant: TestTenant, key: string): Promise<Answer> =>
  cells.send(tenant, { method: 'PUT', target: `/${tenant.bucket}/${escape(key)}`, body: key })
const keysOf = ({ text }: Answer): string[] => [...text.matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = '']) => key)

test('the engine keeps a key with a control character, and lists another one in its place', async () => {
  const cells = await openTestEngines()
  const ada = await cells.open('ada')
  const keys = ['a\u0003b', 'a\u0004b', 'a\uffffb']
  for (const key of keys) expect((await put(cells, ada, key)).status).toBe(200)
  for (const key of keys)
    expect((await cells.send(ada, { method: 'GET', target: `/${ada.bucket}/${escape(key)}` })).text).toBe(key)
  const lists = ['list-type=2', 'encoding-type=url&list-type=2', 'encoding-type=url', 'encoding-type=url&versions=']
  for (const list of lists) {
    const answer = await cells.send(ada, { method: 'GET', target: `/${ada.bucket}?${list}` })
    expect([list, keysOf(answer)]).toEqual([list, keys.map(() => 'a\ufffdb')])
  }
  for (const key of keys) expect(engineKeyRefusal(key, true)).toMatchObject({ status: 400, code: 'InvalidRequest' })
  // What was stored before can still be read and deleted.
  for (const key of keys) expect(engineKeyRefusal(key, false)).toBeUndefined()
  for (const key of keys)
    expect((await cells.send(ada, { method: 'DELETE', target: `/${ada.bucket}/${escape(key)}` })).status).toBe(204)
})

test('the ones that XML can hold are listed as they are', async () => {
  const cells = await openTestEngines()
  const ada = await cells.open('ada')
  const keys = ['a\tb', 'a\nb', 'a\rb', 'a\u007fb', 'a\u0085b', 'a\u2028b']
  for (const key of keys) {
    expect(engineKeyRefusal(key, true)).toBeUndefined()
    expect((await put(cells, ada, key)).status).toBe(200)
  }
  const listed = keysOf(await cells.send(ada, { method: 'GET', target: `/${ada.bucket}?list-type=2` }))
  const plain = listed.map((key) =>
    key.replaceAll(/&#x([0-9A-F]+);/g, (_whole, hex: string) => String.fromCodePoint(Number.parseInt(hex, 16))),
  )
  expect(plain).toEqual(keys)
})
