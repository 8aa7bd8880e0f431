/** The benchmarks: every file `b*.ts` here exports one. */
import { readdir } from 'node:fs/promises'
import type { Bench } from './runner.ts'

const FOLDER = new URL('.', import.meta.url)

/** Names of the files, in order. */
export const benchmarkFiles = async (): Promise<readonly string[]> =>
  (await readdir(FOLDER)).filter((file) => /^b\d\d-.*\.ts$/.test(file)).sort()

export const loadBenchmark = async (file: string): Promise<Bench> =>
  ((await import(new URL(file, FOLDER).href)) as { readonly bench: Bench }).bench // every b*.ts exports its bench
