/** A text that is copied by a press, and commands to copy. */
import './copy.css'
import { Check, Copy as CopyIcon } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'
import { Button as AriaButton, Tab, TabList, TabPanel, Tabs } from 'react-aria-components'
import { after } from '../system.ts'
import { t } from '../texts/index.ts'
import { announce } from './toast.tsx'

const SHOWN_MILLISECONDS = 1_500

function useCopy(text: string): readonly [boolean, () => void] {
  const [isCopied, setCopied] = useState(false)
  useEffect(() => (isCopied ? after(SHOWN_MILLISECONDS, () => setCopied(false)) : undefined), [isCopied])
  const copy = (): void => {
    void navigator.clipboard?.writeText(text).then(() => {
      setCopied(true)
      announce(t().ui.copied)
    })
  }
  return [isCopied, copy]
}

const Mark = ({ isCopied }: { readonly isCopied: boolean }): ReactNode =>
  isCopied ? <Check aria-hidden="true" /> : <CopyIcon aria-hidden="true" />

/** The text itself, with a button that copies it. */
export function Copy({ text }: { readonly text: string }): ReactNode {
  const [isCopied, copy] = useCopy(text)
  return (
    <span className="copy">
      <code dir="auto">{text}</code>
      <AriaButton aria-label={t().ui.copy(text)} onPress={copy}>
        <Mark isCopied={isCopied} />
      </AriaButton>
    </span>
  )
}

export interface SnippetForm {
  readonly name: string
  readonly text: string
}

/** The same as a command: one text for each form. */
export function Snippet({
  label,
  forms,
}: {
  readonly label: string
  readonly forms: readonly SnippetForm[]
}): ReactNode {
  return (
    <Tabs className="snippet">
      <div className="snippet-head">
        <TabList aria-label={label} className="snippet-tabs">
          {forms.map(({ name }) => (
            <Tab key={name} id={name}>
              {name}
            </Tab>
          ))}
        </TabList>
      </div>
      {forms.map(({ name, text }) => (
        <TabPanel key={name} id={name}>
          <SnippetText text={text} />
        </TabPanel>
      ))}
    </Tabs>
  )
}

function SnippetText({ text }: { readonly text: string }): ReactNode {
  const [isCopied, copy] = useCopy(text)
  return (
    <div className="snippet-text">
      <pre tabIndex={0}>{text}</pre>
      <AriaButton aria-label={t().ui.copyCommand} onPress={copy}>
        <Mark isCopied={isCopied} />
      </AriaButton>
    </div>
  )
}
