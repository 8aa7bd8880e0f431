/** Load from a process of its own, so that it does not take the time of what it measures: closed loops of GETs on
 *  keep-alive
 *  connections, each loop with its own token. Says `{units, seconds, failures}` as JSON. Started with fork by
 *  `loadFrom`. */
import { fork } from 'node:child_process'
import { Agent, request } from 'undici'
import { onParentMessage, sendToParent } from '../kit/sys/process.ts'
import { closedLoop } from './runner.ts'

interface Order {
  readonly url: string
  readonly tokens: readonly string[]
  readonly clients: number
  readonly seconds: number
}

interface Report {
  readonly units: number
  readonly seconds: number
  readonly failures: number
}

/** Runs the loops in a child process. Throws when an answer was not 200. */
export async function loadFrom(order: Order): Promise<Report> {
  const child = fork(import.meta.filename, { execArgv: [] })
  const report = await new Promise<Report>((resolve, reject) => {
    child.once('message', (message) => resolve(message as Report)) // the child below says nothing else
    child.once('exit', (code) => reject(new Error(`the load ended with ${code}`)))
    child.send(order)
  })
  child.disconnect()
  if (report.failures > 0) throw new Error(`${report.failures} of ${report.units} requests were not answered with 200`)
  return report
}

if (import.meta.main) {
  onParentMessage((message) => {
    const { url, tokens, clients, seconds } = message as Order // from loadFrom
    const dispatcher = new Agent({ connections: clients })
    let [turn, failures] = [0, 0]
    const get = async () => {
      const { statusCode, body } = await request(url, {
        dispatcher,
        headers: { authorization: `Bearer ${tokens[turn++ % tokens.length]}` },
      })
      await body.arrayBuffer()
      if (statusCode !== 200) failures += 1
    }
    void closedLoop(clients, seconds, get).then((done) => sendToParent({ ...done, failures }))
  })
}
