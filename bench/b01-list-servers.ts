/** A page of 100 of an account's 10 000 servers, with a token, against a bare node:http server that sends the same
 *  bytes. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { startServer } from '../kit/http/server.ts'
import { systemClock as clock } from '../kit/sys/clock.ts'
import { silentLog as log } from '../kit/sys/log.ts'
import { newUuid, systemRandom as random } from '../kit/sys/random.ts'
import { Server } from '../resources/server/index.ts'
import { openCloud, serverSpec } from './cloud.ts'
import { loadFrom } from './load.ts'
import type { Bench, Side } from './runner.ts'

const SERVERS = { full: 10_000, short: 200 }
const BATCH = 500
const PAGE = 100
const CLIENTS = 16

export const bench: Bench = {
  name: 'B01 list servers',
  question: `a page of ${PAGE} of ${SERVERS.full} servers`,
  subjectName: 'GET /v1/servers',
  peerName: 'bare node:http, same bytes',
  unit: 'pages',
  goal: 0.75,
  heldBy:
    'pages are encoded once and sent as they are; what is left is the request itself: its token, budget, permission ' +
    'and query are read, and its headers made, anew each time.',
  tier: 'database',
  async open(round) {
    const cloud = await openCloud([])
    for (let from = 0; from < SERVERS[round]; from += BATCH)
      await Promise.all(
        Array.from({ length: Math.min(BATCH, SERVERS[round]) }, (_, index) =>
          cloud.store.create(Server, {
            metadata: { name: newUuid(random), namespace: cloud.namespace },
            spec: serverSpec(from + index, { labels: { number: String(from + index) }, sshKeys: [] }),
          }),
        ),
      )
    await cloud.startCaches()
    const api = await startServer({ host: '127.0.0.1', port: 0, service: cloud.app.customers, clock, random, log })
    const url = `http://127.0.0.1:${api.port}/v1/servers?limit=${PAGE}`
    const answer = await fetch(url, { headers: { authorization: `Bearer ${cloud.tokens[0]}` } })
    const bytes = Buffer.from(await answer.arrayBuffer())
    const bare = createServer((_, response) =>
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.length }).end(bytes),
    )
    await new Promise<void>((resolve) => bare.listen(0, '127.0.0.1', resolve))
    const side = (target: string): Side => ({
      run: (seconds) => loadFrom({ url: target, tokens: cloud.tokens, clients: CLIENTS, seconds }),
    })
    return {
      subject: side(url),
      peer: side(`http://127.0.0.1:${(bare.address() as AddressInfo).port}/`), // a listening TCP server has one
      facts: () => ({ 'bytes a page': bytes.length }),
      async close() {
        await api.stop(1_000)
        bare.closeAllConnections()
        bare.close()
        await cloud.close()
      },
    }
  },
}
