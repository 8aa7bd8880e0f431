/** Provides the signing keys for tokens of people to the API server beside it, over TLS on the loopback address. It
 *  serves the last state from the host process, so that tokens are accepted even while the host process and the
 *  platform are unavailable.
 *  Command line: FILES PORT. */
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { exitProcess, onFatal, printErrorLine, processArguments, stopSignal } from '../../../kit/sys/process.ts'

const [files = '', port = ''] = processArguments()
const PATHS: Readonly<Record<string, string>> = {
  '/.well-known/openid-configuration': 'issuer.json',
  '/jwks': 'issuer-keys.json',
}
const read = (name: string) => readFile(join(files, name), 'utf8')

onFatal((error) => printErrorLine(String(error)))
const server = createServer({ cert: await read('issuer.crt'), key: await read('issuer.key') }, (request, response) => {
  const name = PATHS[request.url ?? '']
  const answer = name === undefined ? Promise.resolve(undefined) : read(name).catch(() => undefined)
  void answer.then((body) =>
    response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(body ?? ''),
  )
})
server.listen(Number(port), '127.0.0.1')
stopSignal().addEventListener('abort', () => exitProcess(0))
