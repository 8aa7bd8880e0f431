/** The first steps of every process of the product. */
import type { z } from 'zod'
import { type Logger, openLog } from './log.ts'
import { exitProcess, onFatal, printErrorLine, sendAndExit, stopSignal, takeEnvironment } from './process.ts'
import { type logLevel, SETTINGS_VARIABLE, settingsIn, SettingsRefused } from './settings.ts'

type Schema = z.ZodObject<{ logLevel: typeof logLevel }>

export interface StartedProcess<Settings> {
  readonly settings: Settings
  readonly log: Logger
  /** Aborts when the process must stop. */
  readonly stop: AbortSignal
  /** Resolves then. */
  readonly stopped: Promise<void>
}

/** Reads the settings, opens the log, and ends the process for errors that nobody catches. Missing or wrong settings
 *  end it with the code 1: it prints what to change, and reports that to the parent that supervises it. */
export async function startProcess<S extends Schema>(
  component: string,
  schema: S,
): Promise<StartedProcess<z.output<S>>> {
  const settings = await settingsOrEnd(component, schema)
  const { logLevel: level } = settings as z.output<Schema> // S has the field
  const log = openLog(component, level)
  onFatal((error) => log.error('unexpected error', { error }))
  const stop = stopSignal()
  const stopped = new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }))
  return { settings, log, stop, stopped }
}

async function settingsOrEnd<S extends Schema>(component: string, schema: S): Promise<z.output<S>> {
  try {
    return settingsIn(schema, takeEnvironment(SETTINGS_VARIABLE))
  } catch (error) {
    return endRefused(component, error)
  }
}

/** Ends the process for settings that are refused, as above: also for files that settings name. Throws every other
 *  error. */
export async function endRefused(component: string, error: unknown): Promise<never> {
  if (!(error instanceof SettingsRefused)) throw error
  const refused = `${component} does not start. ${error.message}`
  printErrorLine(refused)
  await sendAndExit({ refused }, 1)
  return exitProcess(1)
}
