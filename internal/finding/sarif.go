package finding

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
)

// SARIF is a log of the Static Analysis Results Interchange Format, version 2.1.0 (OASIS), as far as these commands use it.
type SARIF struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []SARIFRun `json:"runs"`
}

// SARIFRun is one run of a command.
type SARIFRun struct {
	Tool        SARIFTool         `json:"tool"`
	Invocations []SARIFInvocation `json:"invocations"`
	ColumnKind  string            `json:"columnKind"`
	Results     []SARIFResult     `json:"results"`
}

// SARIFTool names the program.
type SARIFTool struct {
	Driver SARIFDriver `json:"driver"`
}

// SARIFDriver is the program with its rules.
type SARIFDriver struct {
	Name           string      `json:"name"`
	InformationURI string      `json:"informationUri"`
	Rules          []SARIFRule `json:"rules"`
}

// SARIFRule is a rule of the command.
type SARIFRule struct {
	ID                   string             `json:"id"`
	ShortDescription     SARIFMessage       `json:"shortDescription"`
	FullDescription      SARIFMessage       `json:"fullDescription"`
	Help                 SARIFMessage       `json:"help"`
	HelpURI              string             `json:"helpUri"`
	DefaultConfiguration SARIFConfiguration `json:"defaultConfiguration"`
}

// SARIFConfiguration has the level of a rule.
type SARIFConfiguration struct {
	Level string `json:"level"`
}

// SARIFMessage is a text.
type SARIFMessage struct {
	Text     string `json:"text"`
	Markdown string `json:"markdown,omitempty"`
}

// SARIFInvocation says whether the run read everything.
type SARIFInvocation struct {
	ExecutionSuccessful        bool                `json:"executionSuccessful"`
	ToolExecutionNotifications []SARIFNotification `json:"toolExecutionNotifications,omitempty"`
}

// SARIFNotification is what the run lacks.
type SARIFNotification struct {
	Level   string       `json:"level"`
	Message SARIFMessage `json:"message"`
}

// SARIFResult is a finding.
type SARIFResult struct {
	RuleID              string            `json:"ruleId"`
	RuleIndex           int               `json:"ruleIndex"`
	Level               string            `json:"level"`
	Message             SARIFMessage      `json:"message"`
	Locations           []SARIFLocation   `json:"locations"`
	PartialFingerprints map[string]string `json:"partialFingerprints"`
}

// SARIFLocation is the place of a finding: in an object, and in a file.
type SARIFLocation struct {
	PhysicalLocation *SARIFPhysical `json:"physicalLocation,omitempty"`
	LogicalLocations []SARIFLogical `json:"logicalLocations"`
}

// SARIFPhysical is a place in a file.
type SARIFPhysical struct {
	ArtifactLocation SARIFArtifact `json:"artifactLocation"`
	Region           *SARIFRegion  `json:"region,omitempty"`
}

// SARIFArtifact is a file, by a relative or absolute URI reference.
type SARIFArtifact struct {
	URI string `json:"uri"`
}

// SARIFRegion is a line, and a column of it.
type SARIFRegion struct {
	StartLine   int `json:"startLine"`
	StartColumn int `json:"startColumn,omitempty"`
}

// SARIFLogical is a place in an object.
type SARIFLogical struct {
	Name               string `json:"name"`
	FullyQualifiedName string `json:"fullyQualifiedName"`
	Kind               string `json:"kind"`
}

const (
	sarifSchema  = "https://json.schemastore.org/sarif-2.1.0.json"
	sarifVersion = "2.1.0"
	home         = "https://github.com/fieldperm/fieldperm"
)

// Tool is a command that reports findings.
type Tool struct {
	// Name is the name of the command as its users know it.
	Name string
	// Page is the page of docs/reference that has a section for each rule.
	Page string
	// Fingerprint is the name and the version of the fingerprint. Raise the version if what is hashed changes.
	Fingerprint string
	Rules       []Rule
}

// SARIF returns findings as a log. missing are sentences about what the run lacks.
func (t Tool) SARIF(findings []Finding, missing []string) *SARIF {
	run := SARIFRun{
		Tool:        SARIFTool{SARIFDriver{Name: t.Name, InformationURI: home, Rules: []SARIFRule{}}},
		Invocations: []SARIFInvocation{{ExecutionSuccessful: len(missing) == 0}}, ColumnKind: "unicodeCodePoints", Results: []SARIFResult{},
	}
	for _, text := range missing {
		run.Invocations[0].ToolExecutionNotifications = append(run.Invocations[0].ToolExecutionNotifications, SARIFNotification{string(Warning), SARIFMessage{Text: text}})
	}
	index := map[string]int{}
	for i, r := range t.Rules {
		index[r.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, SARIFRule{
			ID: r.ID, ShortDescription: SARIFMessage{Text: plain(r.Meaning)}, FullDescription: SARIFMessage{Text: plain(r.Meaning + " " + r.Why)},
			Help:    SARIFMessage{Text: plain(r.Why + " " + r.Cure), Markdown: absolute(r.Why + "\n\n" + r.Cure)},
			HelpURI: home + "/blob/main/docs/reference/" + t.Page + "#" + r.ID, DefaultConfiguration: SARIFConfiguration{string(r.Level)},
		})
	}
	for i := range findings {
		f := &findings[i]
		run.Results = append(run.Results, SARIFResult{
			RuleID: f.Rule, RuleIndex: index[f.Rule], Level: string(f.Level), Message: SARIFMessage{Text: f.Message + ": " + f.Cure},
			Locations: []SARIFLocation{f.sarif()}, PartialFingerprints: map[string]string{t.Fingerprint: f.fingerprint()},
		})
	}
	return &SARIF{Schema: sarifSchema, Version: sarifVersion, Runs: []SARIFRun{run}}
}

func (f *Finding) sarif() SARIFLocation {
	name := f.Object.Kind + "/" + f.Object.Name
	if f.Object.Namespace != "" {
		name = f.Object.Kind + "/" + f.Object.Namespace + "/" + f.Object.Name
	}
	short := f.Object.Name
	if f.Path != "" {
		name, short = name+"#"+f.Path, f.Path
	}
	out := SARIFLocation{LogicalLocations: []SARIFLogical{{Name: short, FullyQualifiedName: name, Kind: "object"}}}
	if f.File != "" {
		out.PhysicalLocation = &SARIFPhysical{ArtifactLocation: SARIFArtifact{uri(f.File)}}
		if f.Line > 0 {
			out.PhysicalLocation.Region = &SARIFRegion{f.Line, f.Column}
		}
	}
	return out
}

// fingerprint is the same as long as the fault is: the order of rules, the lines of a file and the words of messages do not count.
func (f *Finding) fingerprint() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{f.Rule, f.Object.Kind, f.Object.Namespace, f.Object.Name, f.About}, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// uri is a file as a URI reference. Characters that a URI cannot have are escaped.
func uri(file string) string {
	const plainBytes = "/-._~!$&'()*+,;=:@"
	var out strings.Builder
	slashed := filepath.ToSlash(file)
	if strings.HasPrefix(slashed, "/") {
		out.WriteString("file://")
	}
	for i := range len(slashed) {
		c := slashed[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(plainBytes, c) >= 0 {
			out.WriteByte(c)
			continue
		}
		const digits = "0123456789ABCDEF"
		out.Write([]byte{'%', digits[c>>4], digits[c&15]})
	}
	return out.String()
}

// plain is a text without the syntax of Markdown.
func plain(text string) string {
	var out strings.Builder
	for {
		begin := strings.Index(text, "](")
		if begin < 0 {
			break
		}
		end := strings.IndexByte(text[begin:], ')')
		out.WriteString(text[:begin])
		text = text[begin+end+1:]
	}
	out.WriteString(text)
	return strings.NewReplacer("`", "", "[", "").Replace(out.String())
}

// absolute is a text of the reference pages with absolute links.
func absolute(text string) string {
	return strings.NewReplacer("](../", "]("+home+"/blob/main/docs/", "](verbs.md", "]("+home+"/blob/main/docs/reference/verbs.md", "](powers.md", "]("+home+"/blob/main/docs/reference/powers.md").Replace(text)
}
