/** Receives one snapshot of etcd over TLS, from clients with access to readers, and exits. First it removes what an
 *  earlier attempt left, and data of generations that are no longer used.
 *  Command line: FILES DATA GENERATION PORT. */
import { createHash } from 'node:crypto'
import { readdir, readFile, rename, rm } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { writeParts } from '../../../kit/sys/durable-file.ts'
import { exitProcess, printErrorLine, printLine, processArguments } from '../../../kit/sys/process.ts'

const [files = '', data = '', generation = '', port = ''] = processArguments()
const file = join(data, 'snapshot.db')
const read = (name: string) => readFile(join(files, name), 'utf8')

for (const name of await readdir(data)) {
  const of = /^etcd-(\d+)$/.exec(name)?.[1]
  // The previous generation may still be needed.
  const isOver = of !== undefined && Number(of) !== Number(generation) - 1
  if (isOver || name.startsWith('snapshot.db')) await rm(join(data, name), { recursive: true, force: true })
}
const server = createServer(
  {
    cert: await read('etcd.crt'),
    key: await read('etcd.key'),
    ca: await read('reader-ca.crt'),
    requestCert: true,
    rejectUnauthorized: true,
  },
  (request, response) => {
    receive(request).then(
      () => response.writeHead(200).end(() => exitProcess(0)),
      (error: unknown) => {
        printErrorLine(String(error))
        response.writeHead(400).end(String(error))
      },
    )
  },
)
server.listen(Number(port), () => printLine('ready'))

async function receive(request: IncomingMessage): Promise<void> {
  if (request.method !== 'PUT') throw new Error('only PUT is taken')
  const [partial, digest] = [`${file}.partial`, createHash('sha256')]
  const digested = async function* () {
    // without an encoding
    for await (const part of request as AsyncIterable<Buffer>) {
      digest.update(part)
      yield part
    }
  }
  await writeParts(partial, digested())
  if (digest.digest('hex') !== request.headers['x-sha256']) throw new Error('it is not what was sent')
  await rename(partial, file)
}
