import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openPlatform } from '../../addons/platform.ts'
import { SvccloudError, unwrap } from '../../client/index.ts'
import { Unavailable } from '../../domain/problem.ts'
import { systemClock } from '../../kit/sys/clock.ts'

let folder: string
let server: Server
let url: string
/** What the service answers next, and the tokens that it was sent. */
let statuses: number[] = []
let tokens: (string | undefined)[] = []
let bodies: string[] = []
const slept: number[] = []
const clock = { ...systemClock, sleep: async (milliseconds: number) => void slept.push(milliseconds) }

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svccloud-platform-'))
  server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += String(chunk)
    tokens.push(request.headers.authorization)
    bodies.push(body)
    const status = statuses.shift() ?? 200
    response.writeHead(status, {
      'content-type': 'application/json',
      ...(status === 429 ? { 'retry-after': '7' } : {}),
    })
    response.end(JSON.stringify(status === 200 ? { items: [], next_cursor: null } : { title: 'No', status }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
afterAll(async () => {
  server.close()
  server.closeAllConnections()
  await rm(folder, { recursive: true, force: true })
})

const open = async (token: string) => {
  const tokenFile = join(folder, 'token')
  await writeFile(tokenFile, `${token}\n`)
  ;[statuses, tokens, bodies] = [[], [], []]
  slept.length = 0
  return { client: openPlatform({ url, tokenFile, clock }), tokenFile }
}

test('a new token needs no new program', async () => {
  const { client, tokenFile } = await open('first')
  await unwrap(client.GET('/v1/storages'))
  await writeFile(tokenFile, 'second')
  await unwrap(client.GET('/v1/storages'))
  expect(tokens).toEqual(['Bearer first', 'Bearer second'])
})

test('what comes too soon is sent again, whole, when the service says so, and not for ever', async () => {
  const { client } = await open('token')
  statuses = [429, 429]
  const body = { zone: 'zone-1', size_gibibytes: 1 }
  await unwrap(client.POST('/v1/storages', { body }))
  expect(slept).toEqual([7_000, 7_000])
  expect(bodies.map((text) => JSON.parse(text) as unknown)).toEqual([body, body, body])
  statuses = Array.from({ length: 20 }, () => 429)
  await expect(unwrap(client.GET('/v1/storages'))).rejects.toThrow(SvccloudError)
  expect(statuses).toHaveLength(10)
})

test('a service that does not answer is not there now', async () => {
  const { tokenFile } = await open('token')
  const client = openPlatform({ url: 'http://127.0.0.1:1', tokenFile, clock })
  await expect(unwrap(client.GET('/v1/storages'))).rejects.toThrow(Unavailable)
})
