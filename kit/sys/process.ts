/** The only access to the process: arguments, environment, exit, signals. */
import { hostname } from 'node:os'
import { type Server, Socket } from 'node:net'

/** The arguments of the program, without Node and the file. */
export const processArguments = (): readonly string[] => process.argv.slice(2)
export const environment = (): Readonly<Record<string, string | undefined>> => process.env
/** The current environment. The variable is removed from it, so that no child of this process inherits it. */
export function takeEnvironment(variable: string): Readonly<Record<string, string | undefined>> {
  const all = { ...process.env }
  delete process.env[variable]
  return all
}
/** The Node binary that runs this process; children are always started with it. */
/** Sets a variable of this process and of those that it starts. */
export const setEnvironment = (variable: string, value: string): void => void (process.env[variable] = value)
export const nodeBinary = (): string => process.execPath
/** Name of the machine, or of the pod. */
export const hostName = (): string => hostname()
export const processId = (): number => process.pid
/** Memory of live and dead objects. */
export const heapBytes = (): number => process.memoryUsage().heapUsed
/** CPU time of this process so far, in user and system mode. */
export const cpuSeconds = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}
export const isRoot = (): boolean => process.getuid?.() === 0
export const workingDirectory = (): string => process.cwd()
export const isTerminal = (): boolean => process.stdout.isTTY === true
/** For programs that pass bytes through. */
export const standardStreams = () => ({ input: process.stdin, output: process.stdout })
export const printLine = (line: string): void => void process.stdout.write(`${line}\n`)
/** A line that cannot be printed, for example because a disk is full, is lost, and does not end the process. */
export function surviveFailedPrints(): void {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
}
export const printErrorLine = (line: string): void => void process.stderr.write(`${line}\n`)

/** Gives up every right of root for good: from then on the process has that user and group, and no other group. */
export function becomeUser(user: number, group: number): void {
  process.setgroups?.([])
  process.setgid?.(group)
  process.setuid?.(user)
}

/** A descriptor from the process that started this one. */
export const inheritedSocket = (descriptor: number): Socket =>
  new Socket({ fd: descriptor, readable: true, writable: true })

/** The first line of the input. `onEnd` is called when the input ends, before or after that line. */
export function readFirstLine(onEnd: () => void): Promise<string> {
  process.stdin.setEncoding('utf8').once('end', onEnd)
  return new Promise((resolve) => {
    let text = ''
    process.stdin.on('data', (chunk: string) => {
      text += chunk
      const end = text.indexOf('\n')
      if (end >= 0) resolve(text.slice(0, end))
    })
  })
}

/** Resolves when the text is written, so that the process may end. */
export const writeOut = (text: string): Promise<void> =>
  new Promise((resolve) => {
    process.stdout.write(text, () => resolve())
  })

/** Ends the process at once with the code. */
export function exitProcess(code: number): never {
  process.exit(code)
}
/** Sets the exit code of a normal end. */
export const setExitCode = (code: number): void => void (process.exitCode = code)

/** Sends a signal; false when no such process exists. Signal 0 only checks. */
export function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException // process.kill throws errno errors only
    if (code === 'ESRCH') return false
    if (code === 'EPERM') return true
    throw error
  }
}

/** An abort signal for SIGINT, SIGTERM and, for a supervised child, the loss of its parent. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController()
  process.once('SIGINT', () => stop.abort('SIGINT'))
  process.once('SIGTERM', () => stop.abort('SIGTERM'))
  if (process.channel) process.once('disconnect', () => stop.abort('parent lost'))
  return stop.signal
}

/** Whether a parent has started it with a channel to itself. */
export const isSupervised = (): boolean => process.send !== undefined
/** Sends a message to a supervising parent (no effect without one). */
export const sendToParent = (message: object): void =>
  // the parent is dead: this process ends with it, and there is nobody to send to
  void process.send?.(message, () => undefined)
/** Sends the message, and ends the process once it is sent. */
export const sendAndExit = (message: object, code: number): Promise<never> =>
  new Promise(() => {
    const end = () => process.exit(code)
    if (process.send === undefined) end()
    else process.send(message, end)
  })
/** Passes a listening server to a supervising parent, which owns it from then on. */
export const giveToParent = (message: object, server: Server): void =>
  void process.send?.(message, server, () => void server.close())
/** With the handle that came with it, such as a socket. */
export const onParentMessage = (listen: (message: unknown, handle?: unknown) => void): void =>
  void process.on('message', listen)

/** Logs errors that nobody caught: a component must restart rather than continue in an unknown state. */
export function onFatal(report: (error: unknown) => void): void {
  const end = (error: unknown) => {
    report(error)
    process.exit(70)
  }
  process.on('uncaughtException', end)
  process.on('unhandledRejection', end)
}
