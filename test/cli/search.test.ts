/** What `svccloud search` asks and prints, against a service that answers as configured. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { runLine } from './run-line.ts'

const closing: (() => void)[] = []
afterEach(() => closing.splice(0).forEach((close) => close()))

const FOUND = [
  { type: 'server', id: 'i1', name: 'web', zone: 'eu-1a', state: 'started' },
  { type: 'network', id: 'i2', name: 'my-web', zone: 'eu-1a', state: '' },
]

async function search(...line: readonly string[]) {
  const asked: string[] = []
  const service = createServer((request, response) => {
    asked.push(request.url ?? '')
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ items: FOUND }))
  })
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve))
  closing.push(() => service.close())
  const { port } = service.address() as AddressInfo // it listens on a port
  const environment = {
    SVCCLOUD_URL: `http://127.0.0.1:${port}`,
    SVCCLOUD_TOKEN: 'token',
    XDG_CONFIG_HOME: '/nonexistent',
  }
  return { ...(await runLine(['search', ...line], { environment })), asked }
}

test('asks for the text and the types, and prints a line for each result', async () => {
  const { code, out, asked } = await search('my', 'web', '--type', 'server', '--type', 'load-balancer')
  expect(asked).toEqual(['/v1/search?q=my+web&type=server&type=load_balancer'])
  expect(code).toBe(0)
  const lines = out.trimEnd().split('\n')
  expect(lines).toHaveLength(3)
  for (const [index, { id, name }] of FOUND.entries()) {
    expect(lines[index + 1]).toContain(id)
    expect(lines[index + 1]).toContain(name)
  }
})

test('refuses no text, and a type that is not searched, before it asks', async () => {
  for (const line of [[], ['web', '--type', 'invoice']]) {
    const { code, asked } = await search(...line)
    expect([code, asked]).toEqual([4, []])
  }
})
