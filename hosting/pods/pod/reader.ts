/** Reads the responses of the API servers and the etcd of one control plane in pods, as an unprivileged user. A
 *  malicious response can damage only its pod. Clients with a certificate of its own authority can ask it over TLS: a
 *  question is a POST of `/tasks`. A POST of `/snapshot` with the address of etcd streams a snapshot as the response.
 *  Command line: FILES PORT. */
import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { readText } from '../../../kit/http/bounded.ts'
import { answerTo } from '../../core/reading/answering.ts'
import { QUESTION_BYTES_MAXIMUM } from '../../core/reading/messages.ts'
import { openReading } from '../../core/reading/tasks.ts'
import { systemClock } from '../../../kit/sys/clock.ts'
import {
  exitProcess,
  onFatal,
  printErrorLine,
  printLine,
  processArguments,
  stopSignal,
} from '../../../kit/sys/process.ts'
import { systemRandom } from '../../../kit/sys/random.ts'
import { API_NAME, ETCD_NAME } from '../names.ts'

const [files = '', port = ''] = processArguments()
/** The address of etcd. */
const Snapshot = z.object({ etcd: z.string() })
const read = (name: string) => readFile(join(files, name), 'utf8')

onFatal((error) => printErrorLine(String(error)))
const serverNames = { api: API_NAME, etcd: ETCD_NAME }
const reading = openReading({ folder: files, serverNames, clock: systemClock, random: systemRandom })
const server = createServer(
  {
    cert: await read('reader.crt'),
    key: await read('reader.key'),
    ca: await read('reader-ca.crt'),
    requestCert: true,
    rejectUnauthorized: true,
  },
  (request, response) => {
    serve(request, response).catch((error: unknown) => {
      // An incomplete snapshot is useless; closing the connection shows the client that it is incomplete.
      if (response.headersSent) response.destroy()
      else response.writeHead(400).end(String(error))
    })
  },
)
server.listen(Number(port), () => printLine('ready'))
stopSignal().addEventListener('abort', () => exitProcess(0))

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const text = await readText(request, QUESTION_BYTES_MAXIMUM)
  if (request.method !== 'POST') throw new Error('only POST is taken')
  if (request.url === '/tasks') response.writeHead(200).end(await answerTo(text, reading))
  else if (request.url === '/snapshot')
    await pipeline((await reading).snapshotParts(Snapshot.parse(JSON.parse(text)).etcd), response)
  else throw new Error('there is nothing else')
}
