/** A credential of an item: read on a click, which is audited, and hidden again after a minute or with the tab. It is
 *  never in the cache. */
import { type ReactNode, useEffect, useState } from 'react'
import type { OperationId } from '../api/operations.ts'
import { asRefusal, type Refusal } from '../api/refusal.ts'
import { useMay } from '../api/session.ts'
import { after } from '../system.ts'
import { t } from '../texts/index.ts'
import { Button } from '../ui/button.tsx'
import { Copy, Snippet } from '../ui/copy.tsx'
import { Facts, Panel, Row, Soft } from '../ui/layout.tsx'
import { ProblemView } from '../ui/problem.tsx'
import { labelOf } from './fields.tsx'
import { send } from './reads.ts'

const SHOWN_MILLISECONDS = 60_000

export interface SecretProps {
  readonly operation: OperationId
  readonly path: Readonly<Record<string, string>>
}

export function Secret({ operation, path }: SecretProps): ReactNode {
  const [answer, setAnswer] = useState<Readonly<Record<string, unknown>>>()
  const [refusal, setRefusal] = useState<Refusal>()
  const may = useMay()
  useEffect(() => {
    if (answer === undefined) return
    const hide = (): void => setAnswer(undefined)
    const hideWithTab = (): void => {
      if (document.visibilityState === 'hidden') hide()
    }
    document.addEventListener('visibilitychange', hideWithTab)
    const cancel = after(SHOWN_MILLISECONDS, hide)
    return () => {
      document.removeEventListener('visibilitychange', hideWithTab)
      cancel()
    }
  }, [answer])
  const reveal = async (): Promise<void> => {
    try {
      setRefusal(undefined)
      setAnswer(await send(operation, { path }))
    } catch (error) {
      setRefusal(asRefusal(operation, error))
    }
  }
  return (
    <Panel title={t().secret.title}>
      <Soft>{t().secret.audited}</Soft>
      {refusal === undefined ? null : <ProblemView refusal={refusal} />}
      {answer === undefined ? (
        <Row>
          <Button why={may(operation) ? undefined : t().problem.askOwner} onPress={() => void reveal()}>
            {t().secret.show}
          </Button>
        </Row>
      ) : (
        <>
          <Shown answer={answer} />
          <Row>
            <Button onPress={() => setAnswer(undefined)}>{t().secret.hide}</Button>
          </Row>
        </>
      )}
    </Panel>
  )
}

/** A file, or single values. */
function Shown({ answer }: { readonly answer: Readonly<Record<string, unknown>> }): ReactNode {
  const { kubeconfig, credentials = answer } = answer
  if (typeof kubeconfig === 'string')
    return <Snippet label={t().secret.title} forms={[{ name: 'kubeconfig', text: kubeconfig }]} />
  return (
    <Facts
      facts={Object.entries(Object(credentials))
        .filter(([, value]) => typeof value === 'string')
        .map(([name, value]) => ({ name: labelOf(name), value: <Copy text={String(value)} /> }))}
    />
  )
}
