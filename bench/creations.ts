/** `POST /v1/servers`: in this process, and over HTTP against a bare server that does one durable insert for each. */
import { createServer as createHttpServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { sql } from 'kysely'
import { startServer } from '../kit/http/server.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { loadFrom } from './load.ts'
import type { Round, Side, World } from './runner.ts'
import { type BenchAccount, type Cloud, KEY, openCloud, PLAN, TEMPLATE, ZONE } from './cloud.ts'

/** The body of a request; `number` is unique in the account. */
export const serverBody = (number: number | string): string =>
  JSON.stringify({ zone: ZONE, hostname: `server-${number}`, plan: PLAN, template: TEMPLATE, ssh_keys: [KEY] })

/** The id of the accepted server. */
export async function createServer({ app }: Cloud, account: BenchAccount, number: number): Promise<string> {
  const response = await app.customers({
    method: 'POST',
    target: '/v1/servers',
    remoteAddress: '127.0.0.1',
    signal: new AbortController().signal,
    headers: {
      authorization: `Bearer ${account.tokens[number % account.tokens.length]}`,
      'content-type': 'application/json',
    },
    body: serverBody(number),
  })
  const body = String(response.body)
  if (response.status !== 202) throw new Error(`answered ${response.status}: ${body}`)
  return (JSON.parse(body) as { readonly server: { readonly id: string } }).server.id // the documented answer
}

const CLIENTS = { full: 64, short: 2 }

/** Creations over HTTP, spread over as many accounts, against bare node:http whose handler parses the body, inserts one
 *  row and answers 201. Both commit to the same PostgreSQL. */
export async function openCreations(round: Round, accounts: number): Promise<World> {
  const cloud = await openCloud(['n1', 'n2', 'n3'], { accounts, tokens: Math.ceil(400 / accounts) })
  await cloud.startCaches()
  const api = await startServer({ host: '127.0.0.1', port: 0, service: cloud.app.customers, clock, random, log })
  await sql`create table bare (id uuid primary key, body jsonb not null)`.execute(cloud.db)
  const bare = createHttpServer((request, response) => {
    void text(request).then(async (body) => {
      const { hostname } = JSON.parse(body) as { readonly hostname: string } // sent by the load
      const id = newUuid(random)
      await sql`insert into bare (id, body) values (${id}, ${body})`.execute(cloud.db)
      const answer = JSON.stringify({ id, hostname })
      response.writeHead(201, { 'content-type': 'application/json' }).end(answer)
    })
  })
  await new Promise<void>((resolve) => bare.listen(0, '127.0.0.1', resolve))
  const { port } = bare.address() as AddressInfo // a listening TCP server has one
  // Tokens of all accounts in turn, so that successive requests are of different accounts.
  const tokens = (cloud.accounts[0]?.tokens ?? []).flatMap((_, index) =>
    cloud.accounts.map((account) => account.tokens[index] ?? ''),
  )
  const side = (url: string): Side => ({
    run: (seconds) => loadFrom({ url, tokens, clients: CLIENTS[round], seconds, body: serverBody('{number}') }),
  })
  return {
    subject: side(`http://127.0.0.1:${api.port}/v1/servers`),
    peer: side(`http://127.0.0.1:${port}/`),
    async close() {
      await api.stop(1_000)
      bare.closeAllConnections()
      bare.close()
      await cloud.close()
    },
  }
}
